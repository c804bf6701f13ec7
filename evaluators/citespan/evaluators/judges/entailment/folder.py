"""A model on disk: a folder with `model.onnx`, `tokenizer.json` and a card, or a hub id that becomes one."""

from __future__ import annotations

import hashlib
import mmap
import re
from importlib import import_module
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.entailment.classifier import Classifier
from citespan.evaluators.judges.entailment.judge import EntailmentJudge
from citespan.evaluators.judges.entailment.modelcard import CARD_FILE, ModelCard

__all__ = ["EntailmentOptions", "load_entailment_judge"]

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")

_DYNAMIC = b"DynamicQuantize"
"""How the operators begin that scale by what is in the batch, fused ones included; their names stand in the file."""

_DYNAMIC_NOTE = "The model is quantised dynamically, which makes scores depend on what is in a batch: each window is run by itself."


class EntailmentOptions(BaseModel):
    """Which model judges; values may be text, as in a judge's name on the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(min_length=1)]
    """Folder, or id of a model on the Hugging Face hub that has an ONNX export."""

    card: str | None = None
    """Path of the model card; `None` for `citespan_card.json` in the folder."""

    revision: str | None = None
    """Revision of a hub model."""

    batch_size: Annotated[int, Field(ge=1, le=1024)] = 4
    """Windows in one run of the model; on one core 16 took a third more time than 4 or 1, by memory traffic."""

    threads: Annotated[int, Field(ge=0)] = 0
    """Threads of one run; 0 lets ONNX Runtime choose."""


def load_entailment_judge(options: EntailmentOptions) -> EntailmentJudge:
    """Return the judge that runs a model from a folder or the hub.

    Raises:
        UsageError: The extra is not installed, or the model, its tokenizer or its card is missing or unusable.
    """
    folder = _find_folder(options)
    card_path = folder / CARD_FILE if options.card is None else Path(options.card)
    card = ModelCard.read(card_path)
    model, tokenizer = folder / card.file, folder / "tokenizer.json"
    is_dynamic = model.is_file() and _holds(model, _DYNAMIC)
    classifier = Classifier(
        card,
        model=model,
        tokenizer=tokenizer,
        batch_size=1 if is_dynamic else options.batch_size,
        threads=options.threads,
    )
    weights = sorted(path for path in model.parent.iterdir() if path.name.startswith(f"{model.name}_data"))
    identity = {path.name: _file_hash(path) for path in (model, *weights, tokenizer)}
    return EntailmentJudge(card, classifier, identity=identity, notes=_DYNAMIC_NOTE if is_dynamic else "")


def _find_folder(options: EntailmentOptions) -> Path:
    folder = Path(options.model)
    if folder.is_dir():
        return folder
    if not _HUB_ID.fullmatch(options.model):
        raise UsageError(
            f"no folder {options.model}: name a folder with {CARD_FILE}, model.onnx and tokenizer.json"
        )
    try:
        hub = import_module("huggingface_hub")
    except ImportError as error:
        raise UsageError(
            f"no folder {options.model}, and a hub id needs the package huggingface_hub: install it, or download "
            "the model into a folder"
        ) from error
    wanted = ["*.onnx", "*.onnx_data", "tokenizer.json", CARD_FILE]
    try:
        path = hub.snapshot_download(options.model, revision=options.revision, allow_patterns=wanted)
    except Exception as error:  # network, licence gate, unknown id: the library has no common root for them
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(
            f"{options.model} is no folder here, and as a hub id it cannot be downloaded: {reason} "
            "Name an existing folder, or download the model into one."
        ) from error
    return Path(str(path))


def _holds(path: Path, needle: bytes) -> bool:
    if not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(needle) >= 0


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
