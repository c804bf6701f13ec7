"""The `citespan` command."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from citespan.evaluators.command.compare import compare
from citespan.evaluators.command.demo import demo
from citespan.evaluators.command.doctor import doctor
from citespan.evaluators.command.evaluate import evaluate
from citespan.evaluators.command.inspect import inspect
from citespan.evaluators.command.purge import purge
from citespan.evaluators.command.report import report
from citespan.evaluators.command.score import score
from citespan.evaluators.command.serve import serve
from citespan.evaluators.command.worker import worker
from citespan.evaluators.errors import CitespanError

__all__ = ["app", "main"]

EXIT_CODES = (
    "Exit codes: 0 done; 1 done, but a gate or check failed; 2 wrong usage or input; "
    "3 a server could not be reached or refused; 4 partly done, the reasons are printed; 130 interrupted."
)
"""Printed at the end of every `--help`."""

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT."""

app = typer.Typer(
    name="citespan",
    help="Check that the citations in RAG answers hold up, claim by claim.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for function in (demo, score, evaluate, report, compare, inspect, serve, doctor, purge):
    app.command(epilog=EXIT_CODES)(function)
app.add_typer(worker, epilog=EXIT_CODES)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"citespan {version('citespan')}")
        raise typer.Exit


@app.callback()
def _citespan(
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code; an error is one line on stderr.

    Args:
        arguments: What follows `citespan`; the process's own by default.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = app(arguments, prog_name="citespan", standalone_mode=False)
    except CitespanError as error:
        code = _fail(str(error), error.exit_code)
    except typer.TyperException as error:
        code = _fail(_usage(error), error.exit_code)
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: typer.TyperException) -> str:
    """Return what is wrong with the arguments and where help is; nothing if the help was printed instead."""
    message = error.format_message().rstrip(".").replace(": Value error, ", ": ")
    context: object = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "citespan")
    return f"{message}: see {command} --help" if message else ""


def _fail(message: str, exit_code: int) -> int:
    from citespan.evaluators.command.terminal import Terminal

    if message:
        Terminal().say(f"citespan: {message}", style="red")
    return exit_code
