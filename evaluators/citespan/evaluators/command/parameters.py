"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citespan.evaluators.options import CitationScope, LabelPolicy, Splitting

if TYPE_CHECKING:
    from citespan.evaluators.command.gates import Gate

EVALUATION, READING, OUTPUT, GATES, PHOENIX = "Evaluation", "Reading", "Output", "Gates", "Phoenix"
"""Headings of the panels in `--help`."""


class Show(StrEnum):
    """Which runs the label table on the terminal holds."""

    ALL = "all"
    """Every run and claim."""

    FINDINGS = "findings"
    """Runs with a failed, conflicting or unjudged claim, and of those only such claims."""

    BRIEF = "brief"
    """One line per run, and the run that most wants a look in full."""

    NONE = "none"
    """Measures only."""


class Claims(StrEnum):
    """How claims are shown in Phoenix."""

    SPANS = "spans"
    """A span for each claim."""

    ANNOTATIONS = "annotations"
    """An annotation for each claim, on the span of the answer."""

    FINDINGS = "findings"
    """Spans for the claims of runs with a finding only."""


EndpointOption = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="URL of Phoenix. \\[PHOENIX_COLLECTOR_ENDPOINT, or PHOENIX_HOST and PHOENIX_PORT; "
        "default: http://localhost:6006]",
        rich_help_panel=PHOENIX,
        show_default=False,
    ),
]
ProjectOption = Annotated[
    str | None,
    typer.Option(
        "--project",
        "-p",
        metavar="NAME",
        help="Name of the Phoenix project. \\[PHOENIX_PROJECT_NAME; default: default]",
        rich_help_panel=PHOENIX,
        show_default=False,
    ),
]
SeriesOption = Annotated[
    str | None,
    typer.Option(
        "--series",
        metavar="NAME",
        help="Name of an evaluation beside the main one. \\[CITESPAN_SERIES]",
        rich_help_panel=PHOENIX,
        show_default=False,
    ),
]
ClaimsOption = Annotated[
    Claims | None,
    typer.Option(
        "--claims",
        metavar="MODE",
        help="How claims are shown in Phoenix: spans, annotations (on the answer's span) or findings "
        "(spans where something is wrong). \\[CITESPAN_CLAIMS; default: spans]",
        rich_help_panel=PHOENIX,
        show_default=False,
    ),
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="NAME",
        help="Who judges: lexical, chat:MODEL, entailment:FOLDER, cascade:A,B. \\[CITESPAN_JUDGE; default: lexical]",
        rich_help_panel=EVALUATION,
        show_default=False,
    ),
]
ScopeOption = Annotated[
    CitationScope | None,
    typer.Option(
        "--citation-scope",
        metavar="SCOPE",
        help="What a paragraph-final marker covers: its sentence, or the paragraph. \\[CITESPAN_CITATION_SCOPE; default: sentence]",
        rich_help_panel=EVALUATION,
        show_default=False,
    ),
]
SplittingOption = Annotated[
    Splitting | None,
    typer.Option(
        "--splitting",
        metavar="MODE",
        help="How finely answers are split into claims: sentence or atomic. \\[CITESPAN_SPLITTING; default: atomic]",
        rich_help_panel=EVALUATION,
        show_default=False,
    ),
]
PolicyOption = Annotated[
    LabelPolicy | None,
    typer.Option(
        "--label-policy",
        metavar="POLICY",
        help="Whether any one cited passage must support a claim alone, or their union: any or union. "
        "\\[CITESPAN_LABEL_POLICY; default: any]",
        rich_help_panel=EVALUATION,
        show_default=False,
    ),
]
RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--reading-rules",
        metavar="FILE",
        help="TOML or JSON file that names the spans and attributes that hold answer, question and passages. "
        "\\[CITESPAN_READING_RULES]",
        rich_help_panel=READING,
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the label table to this .jsonl, .csv or .parquet file.",
        rich_help_panel=OUTPUT,
        show_default=False,
    ),
]
OverwriteOption = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace a table even if people have put labels into it.",
        rich_help_panel=OUTPUT,
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel=OUTPUT),
]
ShowOption = Annotated[
    Show,
    typer.Option(
        "--show",
        metavar="WHICH",
        help="What to print of the runs: all, findings, brief (a line each) or none.",
        rich_help_panel=OUTPUT,
    ),
]


def _bound(name: str, text: str) -> object:
    return typer.Option(
        name, min=0.0, max=1.0, metavar="SHARE", help=text, rich_help_panel=GATES, show_default=False
    )


MinSupport = Annotated[float | None, _bound("--min-support", "Fail if pooled support is lower.")]
MinCoverage = Annotated[float | None, _bound("--min-coverage", "Fail if pooled coverage is lower.")]
MinCompleteness = Annotated[float | None, _bound("--min-completeness", "Fail if completeness is lower.")]
MinValidity = Annotated[float | None, _bound("--min-validity", "Fail if validity is lower.")]
MaxContradicted = Annotated[
    float | None, _bound("--max-contradicted", "Fail if the contradicted share is higher.")
]
MaxUnjudged = Annotated[
    float | None,
    _bound(
        "--max-unjudged",
        "Fail if more of the cited claims are unjudged; 0.05 as soon as there is another gate.",
    ),
]


def gates(
    *,
    support: float | None,
    coverage: float | None,
    completeness: float | None,
    validity: float | None,
    contradicted: float | None,
    unjudged: float | None,
) -> tuple[Gate, ...]:
    """Return the gates that the options make."""
    from citespan.evaluators.command.gates import Gate

    floors = {
        "support": support,
        "coverage": coverage,
        "completeness": completeness,
        "validity": validity,
    }
    ceilings = {"contradicted": contradicted, "unjudged": unjudged}
    return (
        *(Gate(name, bound) for name, bound in floors.items() if bound is not None),
        *(Gate(name, bound, is_ceiling=True) for name, bound in ceilings.items() if bound is not None),
    )
