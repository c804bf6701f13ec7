"""The terminal: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Never

from rich.console import Console
from rich.text import Text

__all__ = ["Terminal", "count", "printable", "uninterrupted"]

BROKEN_PIPE = 141
"""Exit code when the reader of stdout has gone: 128 + SIGPIPE, as for other commands in a pipe."""

_CONTROLS = {code: 0xFFFD for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}


def printable(text: str) -> str:
    """Return `text` without control characters: an answer must not be able to drive the reader's terminal."""
    return text.translate(_CONTROLS)


def count(number: int, noun: str) -> str:
    """Return `1 trace` or `2 traces`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@contextmanager
def uninterrupted() -> Generator[None]:
    """Let the block end before Ctrl-C is heard, so that an interrupt never leaves half a record behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


class _PipeConsole(Console):
    """A console that ends quietly when its reader has gone."""

    def on_broken_pipe(self) -> Never:
        # What Python still flushes at exit must not meet the closed pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(BROKEN_PIPE)


class Terminal:
    """Prints results to stdout and progress, warnings and errors to stderr."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out = _PipeConsole(highlight=False, markup=False, emoji=False)
        self.err = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def write_json(self, text: str) -> None:
        """Write a piece of JSON to stdout as it is, without wrapping."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            self.out.on_broken_pipe()

    def dump(self, value: object) -> str:
        """Return `value` as JSON that stdout's encoding can carry."""
        is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
        return json.dumps(value, ensure_ascii=not is_unicode, allow_nan=False)

    def say(self, text: str, *, style: str = "") -> None:
        """Print a line to stderr."""
        self.err.print(Text(printable(text), style=style), soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning to stderr."""
        self.say(f"! {text}", style="yellow")

    def say_result(self, text: str, *, is_good: bool) -> None:
        """Print the outcome of a check: to stdout, or to stderr where stdout holds JSON."""
        console = self.err if self.as_json else self.out
        console.print(Text(printable(text), style="green" if is_good else "bold red"), soft_wrap=True)

    @contextmanager
    def progress(self, description: str, total: int | None) -> Generator[Callable[[], None]]:
        """Show a bar while the block runs, if a person is watching; the value yielded advances it by one."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        # On the terminal that shows the results the bar must share their console, or each overwrites the other.
        console = self.out if self.out.file.isatty() and not self.as_json else self.err
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        # Asked of the file, since FORCE_COLOR makes a console take a log for a terminal.
        is_watched = console.file.isatty() and total != 1
        with Progress(*columns, console=console, transient=True, disable=not is_watched) as bar:
            task = bar.add_task(description, total=total)
            yield lambda: bar.advance(task)
