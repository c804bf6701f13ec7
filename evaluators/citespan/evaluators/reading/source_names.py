"""The names that an answer may cite a passage's source by: file, title or address, with or without a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from citespan.evaluators.reading.label_forms import fold_label
from citespan.tracer.passages import Passage

__all__ = ["CitedSources"]

_FILE_KEYS = (
    "source",
    "file_name",
    "filename",
    "file",
    "file_path",
    "filepath",
    "path",
    "sourcepage",
    "sourcefile",
)
_PAGE_KEYS = ("page", "page_number", "page_label")
_WITH_PAGE = re.compile(
    r"(?P<base>.+?)[\s,;:#(–-]{0,4}(?:pages?|pg|pp|p|seite|s|página)?[\s.:=]{0,3}0*(?P<page>\d{1,5})\)?"
)
"""`tea.md p. 3`, `tea.md#page=3`, `tea.md (page 3)`, `tea.md:3`."""


class CitedSources:
    """What an answer cites, to be found again among the names of a passage's source."""

    def __init__(self, cited: Iterable[str]) -> None:
        """Take the names cited, folded."""
        self._names = frozenset(cited)
        self._with_page: dict[tuple[str, str], str] = {}
        for name in sorted(self._names):
            match = _WITH_PAGE.fullmatch(name)
            if match is not None:
                self._with_page.setdefault((match["base"], match["page"]), name)

    def find(self, passage: Passage) -> str | None:
        """Return the name that the answer cites the passage's source by, or `None`.

        A name with the passage's page comes first. Loaders count pages from 0 beside the page that is printed:
        where both numbers are cited, neither is clear.
        """
        forms = list(_forms(passage))
        pages = {str(v) for key in _PAGE_KEYS if isinstance(v := passage.metadata.get(key), str | int)}
        for form in forms:
            keys = [(fold_label(form), page) for page in pages]
            exact = {self._with_page[key] for key in keys if key in self._with_page}
            if len(exact) == 1:
                return _cased(exact.pop(), form)
        return next((form for form in forms if fold_label(form) in self._names), None)


def _cased(name: str, form: str) -> str:
    """Return a folded name that begins with `form` as the source spells it."""
    folded = fold_label(form)
    return f"{form}{name[len(folded) :]}" if name.startswith(folded) else name


def _forms(passage: Passage) -> Iterator[str]:
    files = [v for key in _FILE_KEYS if isinstance(v := passage.metadata.get(key), str) and v]
    for name in (*files, passage.title, passage.url):
        if not name:
            continue
        base = re.split(r"[/\\]", name)[-1]
        yield from (form for form in dict.fromkeys((name, base, base.rpartition(".")[0])) if form)
