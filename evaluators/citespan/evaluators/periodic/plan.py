"""What a worker is told to do, and what one of its passes did."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from citespan.evaluators.annotate.series import identifier_of
from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.options import DEFAULT_OPTIONS, EvaluateOptions
from citespan.evaluators.periodic.budget import Limits
from citespan.evaluators.periodic.sampling import Sampling, Shard
from citespan.evaluators.reading.rules import ReadingRules
from citespan.evaluators.settings import ClaimsMode
from citespan.evaluators.worker import PassSummary

__all__ = ["PassReport", "Plan"]

_MOST_FAILURES = 50
"""Failed traces named in one line of the log, which readers of logs cut at some length."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a worker is told to do."""

    project: str
    """Name of the project."""

    series: str | None = None
    """Name of an evaluation beside the main one."""

    claims_mode: ClaimsMode = "spans"
    """How claims are shown."""

    options: EvaluateOptions = DEFAULT_OPTIONS
    """How runs are evaluated."""

    rules: ReadingRules | None = None
    """Where an app keeps its answer and passages, if a settings file says so."""

    trace_ids: tuple[str, ...] = ()
    """Only these traces, at once and whatever is missing; empty for all."""

    since: datetime | None = None
    """Only traces with a span that started then or later."""

    sampling: Sampling = field(default_factory=Sampling)
    """Which share of the traces is taken."""

    shard: Shard = field(default_factory=Shard)
    """Which share of them is this worker's."""

    filter: str | None = None
    """Phoenix trace filter that a trace must pass when it has settled."""

    always: tuple[str, ...] = ()
    """Phoenix trace filters; a trace that passes one is taken though it is not sampled."""

    settle_seconds: float = 60.0
    """How long a trace must have been quiet."""

    settle_max_seconds: float = 900.0
    """How long a trace waits whatever comes or is missing."""

    lookback_seconds: float | None = 48 * 3600.0
    """Age up to which a trace that has been evaluated is evaluated again when that could differ; `None` is any age."""

    is_reevaluating: bool = False
    """Whether traces of every age are evaluated again."""

    is_single_pass: bool = False
    """Whether there is no later pass that a trace could wait for."""

    is_dry_run: bool = False
    """Whether nothing is written back."""

    shows_unchanged: bool = False
    """Whether runs that are done are judged again to be shown, though not written again."""

    with_human_labels: bool = False
    """Whether what people said of the claims is read for whoever is shown the runs."""

    limits: Limits = field(default_factory=Limits)
    """Limits of one pass."""

    most_tries: int = 5
    """After so many failures a trace is set aside."""

    claim_spans_per_second: float | None = 20.0
    """Most claim spans sent a second; `None` is no limit."""

    def leaves_out(self, trace_id: str) -> str | None:
        """Return why a trace is not taken whatever it holds: `other_shard`, `not_sampled`; `None` if it may be."""
        if not self.shard.holds(trace_id):
            return "other_shard"
        return None if self.sampling.holds(trace_id) else "not_sampled"

    def scope(self, base_url: str, project_id: str) -> str:
        """Return the name of this worker's share of a project, under which its state is kept."""
        return f"{base_url} {project_id} {identifier_of(self.series)} {self.shard}"

    def setup(self, judge: JudgeCard) -> str:
        """Return a hash of everything that decides which traces are taken and what is found on them."""
        content = {
            "judge": judge.fingerprint,
            "options": repr(self.options),
            "rules": repr(self.rules),
            "claims": self.claims_mode,
            "rate": self.sampling.rate,
            "filter": self.filter,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(slots=True)
class PassReport:
    """What one pass did."""

    seen: int = 0
    """Traces of which a first span was seen."""

    taken: int = 0
    """Traces read to be evaluated."""

    done: PassSummary = field(default_factory=PassSummary)
    """What was evaluated and written, all batches together."""

    skipped: Counter[str] = field(default_factory=Counter[str])
    """Traces not evaluated, by reason."""

    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Traces that failed, by id, with the reason."""

    pending: int = 0
    """Traces that wait for a later pass."""

    ended_by: str | None = None
    """The limit that ended the pass, or `stop`; `None` if nothing was left to take."""

    has_more: bool = False
    """Whether there is more to read at once."""

    @property
    def runs_evaluated(self) -> int:
        """Runs judged and written."""
        return self.done.runs_evaluated

    @property
    def runs_unchanged(self) -> int:
        """Runs that were evaluated already."""
        return self.done.runs_unchanged

    def follow(self, earlier: PassReport) -> None:
        """Add what earlier passes did to this, the last one."""
        self.seen += earlier.seen
        self.taken += earlier.taken
        self.done.add(earlier.done)
        self.skipped += earlier.skipped
        self.failed = {**earlier.failed, **self.failed}

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form; of many failures it names the first and says how many there are."""
        return {
            "seen": self.seen,
            "taken": self.taken,
            "runs_evaluated": self.runs_evaluated,
            "runs_unchanged": self.runs_unchanged,
            "runs_doubled": self.done.runs_doubled,
            "skipped": dict(self.skipped),
            "failed_count": len(self.failed),
            "failed": dict(islice(self.failed.items(), _MOST_FAILURES)),
            "pending": self.pending,
            "ended_by": self.ended_by,
        }
