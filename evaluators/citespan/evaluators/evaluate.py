"""The pipeline on one page: a run in, its evaluation out.

::

    run -> find_markers -> decompose -> resolve -> judge (cited passages, sets, other passages) -> measure
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from citespan.evaluators.citation_sets import judge_sets
from citespan.evaluators.decompose import decompose
from citespan.evaluators.diagnose import diagnose
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.judge_claims import judge_claims
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.markers import find_markers
from citespan.evaluators.measures import measure
from citespan.evaluators.options import DEFAULT_OPTIONS, EvaluateOptions
from citespan.evaluators.overlap import overlapped
from citespan.evaluators.resolve import resolve
from citespan.evaluators.runs import Run

__all__ = ["evaluate", "evaluate_all"]


def evaluate(
    run: Run, judge: Judge | str = "lexical", options: EvaluateOptions = DEFAULT_OPTIONS
) -> Evaluation:
    """Return the evaluation of one run.

    Args:
        run: The run.
        judge: A judge, or its name in the registry.
        options: How to evaluate.

    Raises:
        UsageError: `judge` names no judge.
    """
    judge = load_judge(judge) if isinstance(judge, str) else judge
    if run.state is not None and run.state.stops_judging:
        return Evaluation.stopped(run, judge.card, options)
    answer = run.answer or ""
    markers = find_markers(answer, run.passages, run.citations)
    claims = decompose(answer, markers, question=run.question, splitting=options.splitting)
    citations = resolve(
        answer, markers, claims, run.passages, scope=options.citation_scope, passages_lost=run.passages_lost
    )
    judged = judge_claims(run, claims, citations, judge, policy=options.label_policy)
    if options.citation_sets:
        judged = judge_sets(run, judged, judge)
    judged = diagnose(run, judged, judge, try_others=options.other_passages)
    return Evaluation(
        run=run,
        claims=tuple(judged),
        citations=tuple(citations),
        measures=measure(
            judged, citations, sets_reason=None if options.citation_sets else "citation sets were not judged"
        ),
        judge=judge.card,
        options=options,
    )


def evaluate_all(
    runs: Iterable[Run], judge: Judge | str = "lexical", options: EvaluateOptions = DEFAULT_OPTIONS
) -> Iterator[Evaluation]:
    """Yield the evaluation of each run in order; memory does not grow with their number.

    As many are under way at once as the judge takes callers: one, unless it says otherwise.

    Raises:
        UsageError: `judge` names no judge.
    """
    judge = load_judge(judge) if isinstance(judge, str) else judge
    yield from overlapped(judge, lambda run: evaluate(run, judge, options), runs)
