"""citespan in Phoenix experiments and in `phoenix.evals`.

::

    from phoenix.client import Client
    from citespan.evaluators.plugins.phoenix_evals import experiment_evaluator

    Client().experiments.run_experiment(
        dataset=dataset,
        task=answer_with_passages,          # returns {"answer": ..., "passages": [...]}
        evaluators=[experiment_evaluator("lexical")],
    )

An experiment keeps only the first score of a `phoenix.evals.Evaluator`, so experiments take the plain callable, which
returns all of them; `evaluate_dataframe` takes the `Evaluator`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from citespan.evaluators.errors import InputError
from citespan.evaluators.evaluate import evaluate
from citespan.evaluators.evaluation import Evaluation
from citespan.evaluators.judges.judge import Judge
from citespan.evaluators.judges.registry import load_judge
from citespan.evaluators.measures import MEASURES
from citespan.evaluators.options import DEFAULT_OPTIONS, EvaluateOptions
from citespan.evaluators.runs import Run
from citespan.evaluators.verdicts import Label

if TYPE_CHECKING:
    from phoenix.evals import Evaluator

__all__ = ["SCORES", "ExperimentEvaluator", "ReadRun", "evals_evaluator", "experiment_evaluator", "read_run"]

SCORES: Mapping[str, str] = {
    "coverage": "cite_cov",
    "completeness": "cite_compl",
    "support": "cite_sup",
    "support_resolved": "cite_sup_resolved",
    "partly_supported": "cite_partly",
    "contradicted": "cite_contra",
    "validity": "cite_valid",
    "link_validity": "cite_links",
    "citation_precision": "cite_prec",
    "citation_recall": "cite_recall",
}
"""Name of each measure's score; those that are also written to traces have the same name there."""

_LOWER_IS_BETTER = frozenset({"partly_supported", "contradicted"})

ScoreRow = dict[str, object]
"""`name`, `score` (none over nothing), `label` (the ratio as text), `explanation` and `metadata`."""

ReadRun = Callable[[object, object, object], Run]
"""Makes a run of an example's task output, input and metadata."""

ExperimentEvaluator = Callable[..., list[ScoreRow]]
"""What `run_experiment(evaluators=[...])` takes."""


def experiment_evaluator(
    judge: Judge | str = "lexical",
    options: EvaluateOptions = DEFAULT_OPTIONS,
    *,
    read: ReadRun | None = None,
) -> ExperimentEvaluator:
    """Return a callable for `run_experiment` that gives every measure of the answer as a score of its own.

    Args:
        judge: A judge, or its name in the registry.
        options: How to evaluate.
        read: Makes the run; `read_run` if not given.

    Raises:
        UsageError: `judge` names no judge.
    """
    loaded = load_judge(judge) if isinstance(judge, str) else judge
    make = read or read_run

    def citations(output: object, input: object = None, metadata: object = None) -> list[ScoreRow]:  # noqa: A002
        return _rows(evaluate(make(output, input, metadata), loaded, options))

    return citations


def read_run(output: object, input: object = None, metadata: object = None) -> Run:  # noqa: A002
    """Return the run of an experiment's example.

    The answer is the task's output, or its field `answer`; `passages`, `citations` and `question` are taken from the
    output, else from the example's input, else from its metadata. A passage may be a plain string: it is labelled by
    its position.

    Raises:
        InputError: There are no passages, or a field has the wrong form; the message names it.
    """
    told = _fields(cast("object", output)) if isinstance(output, Mapping) else {"answer": output}
    fields = _fields(metadata) | _fields(input) | told
    if "passages" not in fields:
        raise InputError(
            "no \"passages\" in the task's output, nor in the example's input or metadata: return "
            '{"answer": ..., "passages": [...]} from the task, or give experiment_evaluator(read=...)'
        )
    fields["passages"] = _passages(fields["passages"])
    return Run.from_dict(fields, default_id="example")


def _fields(place: object) -> dict[str, object]:
    wanted = ("id", "question", "answer", "passages", "citations")
    held: Mapping[str, object] = cast("Mapping[str, object]", place) if isinstance(place, Mapping) else {}
    return {name: held[name] for name in wanted if name in held}


def _passages(passages: object) -> object:
    if not isinstance(passages, Sequence) or isinstance(passages, str | bytes):
        return passages
    items = cast("Sequence[object]", passages)
    return [
        {"id": str(n), "text": item} if isinstance(item, str) else item
        for n, item in enumerate(items, start=1)
    ]


def _rows(evaluation: Evaluation) -> list[ScoreRow]:
    """Return one row per measure, all of them always, and the state where it stopped judging."""
    common = {"judge": evaluation.judge.name, "fingerprint": evaluation.judge.fingerprint}
    rows: list[ScoreRow] = [
        {
            "name": SCORES[name],
            "score": ratio.value,
            "label": "not measured" if ratio.reason else f"{ratio.numerator}/{ratio.denominator}",
            "explanation": _explain(evaluation, name),
            "metadata": {**common, **ratio.to_dict()},
        }
        for name, ratio in evaluation.measures.items()
    ]
    if not evaluation.is_evaluated:
        state: ScoreRow = {"name": "cite_state", "score": None, "label": str(evaluation.run.state)}
        rows.append({**state, "explanation": ", ".join(evaluation.run.reasons), "metadata": common})
    return rows


def _explain(evaluation: Evaluation, name: str) -> str:
    """Return the formula and the counts; for support also what is wrong with each claim that failed."""
    formula = (MEASURES[name].__doc__ or "").strip().splitlines()[0]
    lines = [f"{formula} Here: {evaluation.measures[name]}."]
    if name == "support":
        lines += [
            f"{claim.label}: {claim.claim.text} ({claim.reason})"
            for claim in evaluation.claims
            if claim.label not in (Label.SUPPORTED, Label.UNCITED)
        ]
    return "\n".join(lines)


def evals_evaluator(judge: Judge | str = "lexical", options: EvaluateOptions = DEFAULT_OPTIONS) -> Evaluator:
    """Return a `phoenix.evals.Evaluator` whose inputs are `answer`, `passages`, and optionally `question`, `citations`.

    Raises:
        UsageError: `judge` names no judge.
        ImportError: arize-phoenix-evals is not installed.
    """
    from phoenix.evals import Evaluator, Score
    from pydantic import BaseModel

    loaded = load_judge(judge) if isinstance(judge, str) else judge
    kind = "llm" if loaded.card.sends_text_to else "code"

    class CitationInput(BaseModel):
        answer: str
        passages: list[str | dict[str, object]]
        question: str | None = None
        citations: list[dict[str, object]] | None = None

    class CitationEvaluator(Evaluator):
        def _evaluate(self, eval_input: dict[str, object]) -> list[Score]:
            rows = _rows(evaluate(read_run(eval_input), loaded, options))
            return [_score(row) for row in rows]

    def _score(row: ScoreRow) -> Score:
        lower = {SCORES[name] for name in _LOWER_IS_BETTER}
        return Score(
            name=cast("str", row["name"]),
            score=cast("float | None", row["score"]),
            label=cast("str", row["label"]),
            explanation=cast("str", row["explanation"]),
            metadata=cast("dict[str, object]", row["metadata"]),
            kind=kind,
            direction="minimize" if row["name"] in lower else "maximize",
        )

    return CitationEvaluator(name="citations", kind=kind, input_schema=CitationInput)
