"""What `citespan` and `python -m citespan` start: the command, or one line on what it needs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; without the packages it needs, say which extra brings them and exit with 2."""
    try:
        from citespan.evaluators.command import main as run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "citespan":
            raise
        sys.stderr.write(
            f"citespan: this command needs the evaluators ({error.name} is missing): pip install 'citespan[evaluators]'\n"
        )
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
