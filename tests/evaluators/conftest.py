"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from citespan.evaluators.command import main


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one call of the command."""

    exit_code: int
    out: str
    err: str


@pytest.fixture
def citespan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run `citespan` in this process, as a terminal of 80 columns without colours would show it."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "NO_COLOR", "CITESPAN_JUDGE"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        code = ended.value.code
        return Done(code if isinstance(code, int) else 1, out, err)

    return call
