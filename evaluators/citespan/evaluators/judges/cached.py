"""Any judge behind a store of its verdicts, so that a re-run costs nothing."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.judge import (
    Judge,
    JudgeCard,
    JudgeRequest,
    close_judge,
    concurrency_of,
    estimate_of,
)
from citespan.evaluators.judges.notes import notes_of
from citespan.evaluators.verdicts import Label, Usage, Verdict

__all__ = ["CacheReport", "CachedJudge"]

_log = logging.getLogger(__name__)

SCHEMA = 1
"""Version of the store, kept in its `user_version`; a store of a later version is refused, not overwritten."""

_BUSY_SECONDS = 30.0
"""How long a thread or process waits for another that writes."""

_KEYS_PER_QUERY = 500
"""SQLite takes at least 999 parameters in one statement."""


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What the store was good for."""

    asked: int = 0
    """Requests."""

    found: int = 0
    """Requests whose verdict was in the store or came twice in one batch."""

    saved_usd: float = 0.0
    """What the verdicts that were found had cost, where that is known."""


class CachedJudge:
    """Answers from a SQLite file what was asked before; safe between threads and processes.

    A verdict is found again by the judge's fingerprint, the claim and the passages' texts in order, and by sentence and
    question where the judge reads them. An `unjudged` verdict is never kept: the failure may pass.
    A store that fails later on costs the saving and never a verdict.

    Args:
        judge: The judge to ask what is not in the store.
        path: The file; it and its folder are made if missing.

    Raises:
        UsageError: The file is no store of verdicts, or of a later version, or cannot be opened.
    """

    def __init__(self, judge: Judge, path: str | Path) -> None:
        self._judge = judge
        self._path = Path(path)
        self._lock = threading.Lock()
        self._report = CacheReport()
        self._has_failed = False
        self._under_way: dict[str, threading.Event] = {}
        self._open_store()

    @property
    def card(self) -> JudgeCard:
        """What the judge behind the store is: a store changes no verdict."""
        return self._judge.card

    @property
    def report(self) -> CacheReport:
        """What the store was good for so far."""
        return self._report

    def close(self) -> None:
        """Give back what the judge behind the store holds; the store itself is open only while it is used."""
        close_judge(self._judge)

    @property
    def notes(self) -> tuple[str, ...]:
        """How many verdicts were found and what that saved, then what the judge behind the store says."""
        report = self._report
        saved = f", which had cost ${report.saved_usd:.4f}" if report.saved_usd else ""
        found = f"{report.found:,} of {report.asked:,} verdicts were found in {self._path}{saved}"
        return (found, *notes_of(self._judge))

    @property
    def concurrency(self) -> int:
        """How many threads had better ask at once: as many as the judge behind the store takes."""
        return concurrency_of(self._judge)

    def estimate(self, requests: Sequence[JudgeRequest]) -> Usage | None:
        """Return what judging these would cost if the store held none of the verdicts; `None` if that is unknown."""
        return estimate_of(self._judge, requests)

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        """Return one verdict per request, in the same order; the same request is asked once, whoever asks it first."""
        card = self.card
        keys = [_key(card, request) for request in requests]
        kept: dict[str, _Kept] = {}
        asked: dict[int, Verdict] = {}
        while missing := _first_places(keys, kept):
            mine, others = self._claim(missing)
            try:
                kept |= self._read(mine)
                places = [missing[key] for key in mine if key not in kept]
                answers = self._judge.judge([requests[place] for place in places]) if places else []
                asked |= zip(places, answers, strict=True)
                fresh = {keys[place]: _Kept.of(asked[place], requests[place]) for place in places}
                self._write(card, fresh)
                kept |= fresh
            finally:
                self._release(mine)
            for done in others:
                done.wait()
        again = {place: kept[key] for place, key in enumerate(keys) if place not in asked}
        self._count(len(requests), again.values())
        return [
            asked[place] if place in asked else again[place].given_for(request)
            for place, request in enumerate(requests)
        ]

    def _claim(self, keys: Collection[str]) -> tuple[list[str], list[threading.Event]]:
        """Return the keys that nobody is asking about, now this thread's to ask, and what tells that others are done.

        What another thread asks is read from the store once it is done; what is not there then is asked anew.
        """
        with self._lock:
            mine = [key for key in keys if key not in self._under_way]
            others = [self._under_way[key] for key in keys if key in self._under_way]
            self._under_way |= dict.fromkeys(mine, threading.Event())
        return mine, others

    def _release(self, keys: Sequence[str]) -> None:
        with self._lock:
            done = {self._under_way.pop(key) for key in keys}
        for event in done:
            event.set()

    def _open_store(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._connect() as store:
                version = int(store.execute("PRAGMA user_version").fetchone()[0])
                tables = {
                    str(row[0])
                    for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                }
                if version > SCHEMA or (version == 0 and tables - {"verdicts"}):
                    raise UsageError(
                        f"{self._path} is no store of verdicts that this version reads: name another file in cache="
                    )
                store.execute("PRAGMA journal_mode = WAL")
                store.execute(
                    "CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, "
                    "verdict TEXT NOT NULL, created REAL NOT NULL) WITHOUT ROWID"
                )
                store.execute(f"PRAGMA user_version = {SCHEMA}")
        except (sqlite3.Error, OSError) as error:
            raise UsageError(f"the cache {self._path} cannot be opened: {error}") from error

    @contextmanager
    def _connect(self) -> Generator[sqlite3.Connection]:
        """Yield a connection of its own for each use: nothing is shared between threads, or by a fork."""
        with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS)) as store:
            store.execute("PRAGMA synchronous = NORMAL")
            with store:
                yield store

    def _read(self, wanted: Sequence[str]) -> dict[str, _Kept]:
        """Return what the store holds of these keys; an entry that cannot be read is as good as none."""
        found: dict[str, _Kept] = {}
        try:
            with self._connect() as store:
                for start in range(0, len(wanted), _KEYS_PER_QUERY):
                    part = wanted[start : start + _KEYS_PER_QUERY]
                    marks = ",".join("?" * len(part))
                    rows = store.execute(f"SELECT key, verdict FROM verdicts WHERE key IN ({marks})", part)  # noqa: S608
                    for key, text in rows:
                        one = _Kept.from_json(str(text))
                        if one is not None:
                            found[str(key)] = one
        except sqlite3.Error as error:
            self._warn(error)
        return found

    def _write(self, card: JudgeCard, fresh: Mapping[str, _Kept]) -> None:
        """Keep verdicts but unjudged ones; where another process was first, its verdict stays."""
        now = time.time()
        rows = [
            (key, card.fingerprint, one.to_json(), now)
            for key, one in fresh.items()
            if one.verdict.label is not Label.UNJUDGED
        ]
        if not rows:
            return
        try:
            with self._connect() as store:
                store.executemany("INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            self._warn(error)

    def _warn(self, error: sqlite3.Error) -> None:
        with self._lock:
            is_first, self._has_failed = not self._has_failed, True
        if is_first:
            _log.warning("the cache %s failed (%s): judging goes on without it", self._path, error)

    def _count(self, asked: int, again: Collection[_Kept]) -> None:
        costs = [one.verdict.usage.cost_usd or 0.0 for one in again if one.verdict.usage is not None]
        with self._lock:
            before = self._report
            self._report = CacheReport(
                before.asked + asked, before.found + len(again), before.saved_usd + sum(costs)
            )


@dataclass(frozen=True, slots=True)
class _Kept:
    """A verdict apart from its request: the passage of its evidence by place, since ids differ between runs."""

    verdict: Verdict
    evidence_place: int | None

    @classmethod
    def of(cls, verdict: Verdict, request: JudgeRequest) -> _Kept:
        ids = [passage.id for passage in request.passages]
        named = verdict.evidence_passage_id
        return cls(verdict, ids.index(named) if named is not None and named in ids else None)

    def given_for(self, request: JudgeRequest) -> Verdict:
        """Return the verdict as one on `request`, which cost nothing."""
        by_place = dict(enumerate(passage.id for passage in request.passages))
        passage_id = None if self.evidence_place is None else by_place.get(self.evidence_place)
        return self.verdict.model_copy(update={"evidence_passage_id": passage_id, "usage": None})

    def to_json(self) -> str:
        plain = self.verdict.model_copy(update={"evidence_passage_id": None})
        return json.dumps({"place": self.evidence_place, "verdict": plain.model_dump(mode="json")})

    @classmethod
    def from_json(cls, text: str) -> _Kept | None:
        try:
            data = json.loads(text)
            place = data["place"]
            return cls(Verdict.model_validate(data["verdict"]), None if place is None else int(place))
        except (ValueError, TypeError, KeyError):
            return None


def _first_places(keys: Sequence[str], kept: Collection[str]) -> dict[str, int]:
    """Return where each key that is not kept comes first."""
    places: dict[str, int] = {}
    for place, key in enumerate(keys):
        if key not in kept:
            places.setdefault(key, place)
    return places


def _key(card: JudgeCard, request: JudgeRequest) -> str:
    """Return the sha256 over everything that can change the verdict."""
    content: list[object] = [card.fingerprint, request.claim, [passage.text for passage in request.passages]]
    if card.uses_context:
        content += [request.sentence, request.question]
    return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode()).hexdigest()
