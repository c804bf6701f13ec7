"""Judges by name: `lexical`, and what else is installed."""

from __future__ import annotations

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.judge import Judge

__all__ = ["load_judge"]


def load_judge(name: str) -> Judge:
    """Return the judge called `name`, for example `lexical`.

    Raises:
        UsageError: No judge has that name; the message lists those that exist.
    """
    if name == "lexical":
        # Its word lists take a tenth of a second to read, which `citespan --help` need not wait for.
        from citespan.evaluators.judges.lexical import LexicalJudge

        return LexicalJudge()
    raise UsageError(f"no judge is called {name!r}: choose lexical")
