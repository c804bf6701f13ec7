"""The card beside a model: what its outputs mean, how it is fed, and from which score on a claim is supported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from citespan.evaluators.errors import UsageError

__all__ = ["CARD_FILE", "ModelCard", "Thresholds"]

CARD_FILE = "citespan_card.json"
"""Name of the card in a model's folder."""

Role = Literal["supported", "neutral", "contradicted"]
"""What one output of the model stands for; `neutral` is anything that is neither."""

Share = Annotated[float, Field(ge=0, le=1)]


class Thresholds(BaseModel):
    """From which probability on a label is given; fitted on labelled claims that are not the ones reported."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    supported: Share = 0.5
    """Calibrated probability of entailment from which a claim is supported."""

    partly_supported: Share | None = None
    """Calibrated probability from which it is partly supported; `None` if the model cannot tell."""

    contradicted: Share | None = 0.5
    """Probability of contradiction from which it is contradicted, for models with that output."""


class ModelCard(BaseModel):
    """What a reader and the judge need to know of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = Field(alias="schema")
    """Version of this form."""

    model: Annotated[str, Field(min_length=1)]
    """Name and revision, as shown in reports."""

    licence: str = ""
    """Licence of the weights."""

    source: str = ""
    """Where the weights come from."""

    limits: str = ""
    """One or two sentences on what it is known to get wrong."""

    file: str = "model.onnx"
    """The exported model, relative to the folder."""

    labels: Annotated[tuple[Role, ...], Field(min_length=1)]
    """What the outputs stand for, in order; one alone is the logit of `supported`."""

    template: str | None = None
    """Text with `{passage}` and `{claim}` for models that read one text; `None` for those that read a pair."""

    claim_first: bool = False
    """Whether the pair is claim, passage; most models take passage, claim."""

    max_tokens: Annotated[int, Field(ge=16)] = 512
    """Tokens that the model reads at most."""

    overlap_tokens: Annotated[int, Field(ge=0)] = 64
    """Tokens that two neighbouring windows of a long passage share."""

    temperature: Annotated[float, Field(gt=0)] = 1.0
    """Calibration: the logit of `supported` is divided by it."""

    bias: float = 0.0
    """Calibration: added to the logit after that."""

    thresholds: Thresholds = Thresholds()
    """From which probability on a label is given."""

    @model_validator(mode="after")
    def _is_consistent(self) -> ModelCard:
        if "supported" not in self.labels:
            raise ValueError('labels name no output "supported"')
        if self.template is not None and sorted(re.findall(r"\{(\w+)\}", self.template)) != [
            "claim",
            "passage",
        ]:
            raise ValueError("template: {passage} and {claim} once each")
        if self.overlap_tokens * 2 > self.max_tokens:
            raise ValueError("overlap_tokens is over half of max_tokens")
        return self

    @classmethod
    def read(cls, path: Path) -> ModelCard:
        """Read a card.

        Raises:
            UsageError: There is none at `path`, or it is not of this form; the message says what is wrong.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"no model card at {path} ({error}): write one as docs/models.md shows, or name it by card=FILE"
            ) from None
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "card"
            raise UsageError(f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}") from None
