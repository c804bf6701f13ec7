"""A sequence classifier in ONNX with its tokenizer: texts in, probabilities out."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges.entailment.modelcard import ModelCard
from citespan.evaluators.judges.entailment.windows import Range, cut_windows

__all__ = ["Classifier", "Encoded", "Probabilities"]

_log = logging.getLogger(__name__)

_KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")

_LEAST_ROOM = 16
"""Tokens of a passage under which a window says nothing."""

_PLACEHOLDER = re.compile(r"\{(passage|claim)\}")


class _Encoding(Protocol):
    ids: list[int]
    type_ids: list[int]
    offsets: list[Range]


class _Token(Protocol):
    content: str
    special: bool


class _Tokenizer(Protocol):
    def encode(
        self, sequence: str, pair: str | None = None, *, add_special_tokens: bool = True
    ) -> _Encoding: ...

    def get_added_tokens_decoder(self) -> Mapping[int, _Token]: ...

    def token_to_id(self, token: str) -> int | None: ...

    def no_truncation(self) -> None: ...

    def no_padding(self) -> None: ...


class _Named(Protocol):
    name: str


class _Session(Protocol):
    def get_inputs(self) -> list[_Named]: ...

    def get_outputs(self) -> list[_Named]: ...

    def run(
        self, output_names: list[str], input_feed: Mapping[str, npt.NDArray[np.int64]]
    ) -> list[npt.NDArray[np.float32]]: ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """One window and a claim as the model reads them."""

    ids: tuple[int, ...]
    """Token ids."""

    type_ids: tuple[int, ...]
    """Which of the pair each token is of."""

    window: Range
    """The range of the text that it covers."""


@dataclass(frozen=True, slots=True)
class Probabilities:
    """What the model says of one window."""

    supported: float
    """Calibrated probability that it entails the claim."""

    contradicted: float | None
    """Probability that it contradicts the claim; `None` for models without that output."""


class Classifier:
    """Runs a model on the CPU in fp32; safe between threads.

    Args:
        card: What the model's outputs mean and how it is fed.
        model: The ONNX file.
        tokenizer: The `tokenizer.json` of the Hugging Face `tokenizers` library.
        batch_size: Windows in one run of the model; 1 keeps each by itself.
        threads: Threads of one run; 0 lets ONNX Runtime choose.

    Raises:
        UsageError: The extra is not installed, or a file is not what it should be.
    """

    def __init__(
        self, card: ModelCard, *, model: Path, tokenizer: Path, batch_size: int = 4, threads: int = 0
    ) -> None:
        self._card = card
        self._batch_size = batch_size
        self._tokenizer = _load_tokenizer(tokenizer)
        self._session = _load_session(model, threads)
        self._inputs = [found.name for found in self._session.get_inputs()]
        unknown = [name for name in self._inputs if name not in _KNOWN_INPUTS]
        if unknown:
            raise UsageError(
                f"{model} wants the inputs {', '.join(unknown)}: export it with {_KNOWN_INPUTS} only"
            )
        outputs = [found.name for found in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]
        pads = (self._tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>", "<|pad|>"))
        self._pad = next((pad for pad in pads if pad is not None), 0)
        special = self._tokenizer.get_added_tokens_decoder().values()
        self._special = [token.content for token in special if token.special and token.content]
        self._check_outputs(model)

    def encode(self, text: str, claim: str) -> list[Encoded] | None:
        """Return the windows of `text` with `claim`, each within the model's length; `None` if the claim leaves no room."""
        text, claim = self._as_text(text), self._as_text(claim)
        room = self._card.max_tokens - len(self._encode_one("", claim).ids)
        if room < _LEAST_ROOM:
            return None
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        overlap = min(self._card.overlap_tokens, room // 2)
        return [self._fit(text, window, claim) for window in cut_windows(offsets, room, overlap)]

    def classify(self, encoded: Sequence[Encoded]) -> list[Probabilities | None]:
        """Return the probabilities of each, in order; `None` for one that the model fails on.

        Batches hold windows of like length, so that padding is small.
        """
        order = sorted(range(len(encoded)), key=lambda n: len(encoded[n].ids))
        found: dict[int, Probabilities | None] = {}
        for start in range(0, len(order), self._batch_size):
            part = order[start : start + self._batch_size]
            found |= zip(part, self._classify_batch([encoded[n] for n in part]), strict=True)
        return [found[n] for n in range(len(encoded))]

    def _classify_batch(self, rows: Sequence[Encoded]) -> list[Probabilities | None]:
        try:
            return [self._read(logits) for logits in self._run(rows)]
        except Exception as error:  # the library's exceptions have no public root
            if len(rows) > 1:
                return [one for row in rows for one in self._classify_batch([row])]
            _log.warning("%s failed on a window of %d tokens: %s", self._card.model, len(rows[0].ids), error)
            return [None]

    def _check_outputs(self, model: Path) -> None:
        encoding = self._encode_one("A passage.", "A claim.")
        try:
            (logits,) = self._run([Encoded(tuple(encoding.ids), tuple(encoding.type_ids), (0, 0))])
        except Exception as error:
            raise UsageError(f"{model} fails on a first try: {error}") from error
        if logits.size != len(self._card.labels):
            raise UsageError(f"{model} has {logits.size} outputs and its card names {len(self._card.labels)}")

    def _as_text(self, text: str) -> str:
        """Return `text` with no special token in it, so that it cannot end its own field; its length stays."""
        for token in self._special:
            text = text.replace(token, "\ufffd" + token[1:])
        return text

    def _encode_one(self, text: str, claim: str) -> _Encoding:
        if self._card.template is not None:
            values = {"passage": text, "claim": claim}
            return self._tokenizer.encode(
                _PLACEHOLDER.sub(lambda found: values[found[1]], self._card.template)
            )
        return (
            self._tokenizer.encode(claim, text)
            if self._card.claim_first
            else self._tokenizer.encode(text, claim)
        )

    def _fit(self, text: str, window: Range, claim: str) -> Encoded:
        """Return the window's encoding; a cut inside a word may make a token more, so its end gives way."""
        start, end = window
        while True:
            encoding = self._encode_one(text[start:end], claim)
            over = len(encoding.ids) - self._card.max_tokens
            if over <= 0 or end - start <= over:
                return Encoded(tuple(encoding.ids), tuple(encoding.type_ids), (start, end))
            end -= over

    def _run(self, rows: Sequence[Encoded]) -> npt.NDArray[np.float64]:
        longest = max(len(row.ids) for row in rows)
        feed = {
            "input_ids": np.full((len(rows), longest), self._pad, dtype=np.int64),
            "attention_mask": np.zeros((len(rows), longest), dtype=np.int64),
            "token_type_ids": np.zeros((len(rows), longest), dtype=np.int64),
        }
        for n, row in enumerate(rows):
            feed["input_ids"][n, : len(row.ids)] = row.ids
            feed["attention_mask"][n, : len(row.ids)] = 1
            feed["token_type_ids"][n, : len(row.ids)] = row.type_ids
        (logits,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        return logits.reshape(len(rows), -1).astype(np.float64)

    def _read(self, logits: npt.NDArray[np.float64]) -> Probabilities:
        labels = self._card.labels
        if len(labels) == 1:
            return Probabilities(self._calibrate(float(logits[0])), None)
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        by_role = dict.fromkeys(labels, 0.0)
        for role, share in zip(labels, shares.tolist(), strict=True):
            by_role[role] += share
        supported = min(max(by_role["supported"], 1e-12), 1 - 1e-12)
        return Probabilities(
            self._calibrate(float(np.log(supported / (1 - supported)))), by_role.get("contradicted")
        )

    def _calibrate(self, logit: float) -> float:
        scaled = logit / self._card.temperature + self._card.bias
        return float(1 / (1 + np.exp(-np.clip(scaled, -60.0, 60.0))))


def _import_extra(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(
            f"the entailment judge needs {name}: pip install 'citespan[entailment]' ({error})"
        ) from error


def _load_tokenizer(path: Path) -> _Tokenizer:
    module = _import_extra("tokenizers")
    if not path.is_file():
        raise UsageError(f"no tokenizer at {path}: save it as tokenizer.json (a fast tokenizer)")
    try:
        tokenizer = cast("_Tokenizer", module.Tokenizer.from_file(str(path)))
    except Exception as error:  # the library raises bare Exception
        raise UsageError(f"{path} is no tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _load_session(path: Path, threads: int) -> _Session:
    runtime = _import_extra("onnxruntime")
    if not path.is_file():
        raise UsageError(f"no model at {path}: export it to ONNX as docs/models.md shows")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's exceptions have no public root
        raise UsageError(f"{path} cannot be run: {error}") from error
    return cast("_Session", session)
