"""The chat judge against a real OpenAI-compatible server: llama-cpp-python's, with a model of one layer made here."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from citespan.evaluators.judges.chat import ChatJudge, ChatOptions
from citespan.evaluators.judges.chat.dialect import ReplyFormat
from citespan.evaluators.verdicts import Label

if find_spec("llama_cpp") is None:
    pytest.skip("not installed: pip install 'citespan[llama]' (builds from source)", allow_module_level=True)
gguf = pytest.importorskip("gguf", reason="not installed: pip install 'citespan[dev]'")

WIDTH = 512
LIKED = '"]},1u[{'
"""What the model likes to write next, best first; grammar leaves it no more than this choice."""


def write_model(path: Path) -> None:
    """Write a model whose next token depends on its last one alone, so that its JSON is short and known.

    Embeddings are one-hot, attention and feed-forward are zero, so the output matrix is a table of what follows what:
    the end of the text first, then `LIKED`, then anything; after `[` an object.
    """
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [
        gguf.TokenType.UNKNOWN,
        gguf.TokenType.CONTROL,
        gguf.TokenType.CONTROL,
        *[gguf.TokenType.BYTE] * 256,
    ]
    characters = ["\u2581", *(chr(code) for code in range(33, 127))]
    pieces += characters
    kinds += [gguf.TokenType.NORMAL] * len(characters)
    follows = np.zeros((len(pieces), WIDTH), dtype=np.float32)
    follows[2, :] = 9.0
    follows[3:259, :] = -9.0
    for rank, character in enumerate(LIKED):
        follows[pieces.index(character), :] = 8.0 - rank
    follows[pieces.index("{"), pieces.index("[")] = 20.0
    embeddings = np.eye(len(pieces), WIDTH, dtype=np.float32)

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(16_384)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(8)
    writer.add_head_count_kv(8)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // 8)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([0.0] * len(pieces))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(
        "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
    )
    ones, square = np.ones(WIDTH, dtype=np.float32), np.zeros((WIDTH, WIDTH), dtype=np.float32)
    tensors = {
        "token_embd.weight": embeddings,
        "output_norm.weight": ones,
        "output.weight": follows,
        "blk.0.attn_norm.weight": ones,
        "blk.0.ffn_norm.weight": ones,
        **{f"blk.0.attn_{part}.weight": square for part in ("q", "k", "v", "output")},
        "blk.0.ffn_gate.weight": np.zeros((32, WIDTH), dtype=np.float32),
        "blk.0.ffn_up.weight": np.zeros((32, WIDTH), dtype=np.float32),
        "blk.0.ffn_down.weight": np.zeros((WIDTH, 32), dtype=np.float32),
    }
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("llama")
    write_model(folder / "tiny.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(folder / "tiny.gguf")]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", "12000", "--n_threads", "1"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}/v1"
            deadline = time.monotonic() + 60
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"the server did not start:\n{(folder / 'log').read_text()[-2000:]}")
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=20)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/models", timeout=2).is_success
    except httpx.TransportError:
        return False


@pytest.fixture
def judge(base_url: str) -> Iterator[ChatJudge]:
    judge = ChatJudge(ChatOptions(model="tiny", base_url=base_url, reply_tokens=300))
    yield judge
    judge.close()


def test_a_real_server_answers_in_the_schema_once_its_dialect_is_found(judge: ChatJudge, ask: Any) -> None:
    (verdict,) = judge.judge(
        [ask("Refunds take five days.", "Refunds are issued within five business days.")]
    )
    assert (verdict.label, verdict.rule, verdict.score) == (Label.UNSUPPORTED, "chat", 0.01)
    # This server takes a schema beside JSON mode and refuses OpenAI's form of it.
    assert judge._client.dialect.reply_format is ReplyFormat.JSON_OBJECT_SCHEMA
    assert verdict.usage is not None
    assert verdict.usage.prompt_tokens > 1_000
    assert not verdict.usage.is_estimated


def test_claims_that_a_real_model_leaves_out_are_asked_for_once_more(judge: ChatJudge, ask: Any) -> None:
    # The model writes one verdict a reply, on claim 1: the second claim gets its own in the repair, the third none.
    verdicts = judge.judge([ask(f"Claim {n}.", "A passage.") for n in range(3)])
    assert [verdict.rule for verdict in verdicts] == ["chat", "chat", "missing_verdict"]


def test_a_passage_past_a_real_context_is_read_in_windows_that_fit_it(judge: ChatJudge, ask: Any) -> None:
    # One token a character: 20,000 do not fit 12,000, which the server says. The passage is 6,667 tokens by estimate,
    # so it is asked again in windows of 2,000 (6,000 characters), the largest of 16,000, 8,000 ... under half of that:
    # (20,000 - 750) / (6,000 - 750) is 3.7, so 4 windows.
    verdicts = judge.judge([ask("Claim.", "many words here " * 1_250), ask("Claim.", "A passage.")])
    assert [verdict.rule for verdict in verdicts] == ["chat", "chat"]
    assert "4 of 4 windows were read" in verdicts[0].reason


def test_a_real_model_without_a_schema_is_unjudged_and_not_guessed(base_url: str, ask: Any) -> None:
    judge = ChatJudge(ChatOptions(model="tiny", base_url=base_url, reply_format="text"))
    (verdict,) = judge.judge([ask("Claim.", "A passage.")])
    assert (verdict.label, verdict.rule) == (Label.UNJUDGED, "invalid_reply")
    judge.close()


def test_a_wrong_path_of_a_real_server_is_not_found(base_url: str, ask: Any) -> None:
    judge = ChatJudge(ChatOptions(model="tiny", base_url=base_url.removesuffix("/v1") + "/v9"))
    (verdict,) = judge.judge([ask("Claim.", "A passage.")])
    assert verdict.rule == "not_found"
    judge.close()


def test_passages_reach_a_real_server_whole(base_url: str) -> None:
    # The server counts tokens by its own tokenizer: one a character, so nothing was dropped on the way.
    text = json.dumps({"passages": {"p1": "x" * 3_000}})
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 1}
    reply = httpx.post(f"{base_url}/chat/completions", json=body, timeout=60).json()
    assert reply["usage"]["prompt_tokens"] >= len(text)
