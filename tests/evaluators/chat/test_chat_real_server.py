"""The chat judge against real OpenAI-compatible servers, with a model of one layer made here.

llama-cpp-python's server runs wherever it is installed. Two more run where a variable names their program, since their
own dependencies do not go into one environment with ours: `CITESPAN_TEST_LLAMA_SERVER`, llama.cpp's own `llama-server`,
and `CITESPAN_TEST_LITELLM`, the `litellm` of `pip install 'litellm[proxy]'`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from citespan.evaluators.judges.chat import ChatJudge, ChatOptions
from citespan.evaluators.judges.chat.dialect import ReplyFormat
from citespan.evaluators.verdicts import Label, Verdict

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
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path)
    return path


@contextmanager
def serving(command: list[str], log: Path, ready: str) -> Iterator[str]:
    """Run a server on the port that `command` takes as `{port}` and yield its base URL once `ready` answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    host = f"http://127.0.0.1:{port}"
    with log.open("w") as output:
        filled = [part.replace("{port}", str(port)) for part in command]
        process = subprocess.Popen(filled, stdout=output, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + 60
            while not _answers(host + ready):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"the server did not start:\n{log.read_text()[-2000:]}")
                time.sleep(0.1)
            yield f"{host}/v1"
        finally:
            process.terminate()
            process.wait(timeout=20)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).is_success
    except httpx.TransportError:
        return False


def program(variable: str) -> str:
    """Return the program that `variable` names, or skip."""
    path = os.environ.get(variable, "")
    if not path:
        pytest.skip(f"opt-in: {variable} names no program")
    return path


@pytest.fixture(scope="module")
def base_url(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--host", "127.0.0.1"]
    command += ["--port", "{port}", "--n_ctx", "5000", "--n_threads", "1"]
    with serving(command, tmp_path_factory.mktemp("llama") / "log", "/v1/models") as url:
        yield url


@pytest.fixture(scope="module")
def llama_server_url(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [program("CITESPAN_TEST_LLAMA_SERVER"), "-m", str(model), "--host", "127.0.0.1"]
    command += ["--port", "{port}", "-c", "12000", "-t", "1", "--no-webui", "--api-key", "sk-right"]
    with serving(command, tmp_path_factory.mktemp("llama-server") / "log", "/health") as url:
        yield url


@pytest.fixture(scope="module")
def proxy_url(base_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("litellm")
    parameters = {"model": "openai/tiny", "api_base": base_url, "api_key": "none"}
    config = {
        "model_list": [{"model_name": "judge", "litellm_params": parameters}],
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "general_settings": {"master_key": "sk-right"},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    command = ["env", "LITELLM_LOCAL_MODEL_COST_MAP=True", program("CITESPAN_TEST_LITELLM")]
    command += ["--config", str(folder / "config.yaml"), "--host", "127.0.0.1", "--port", "{port}"]
    with serving(command, folder / "log", "/health/liveliness") as url:
        yield url


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
    # One token a character: 3,200 and the instructions' 2,400 do not fit 5,000, which the server says. The passage is
    # 1,068 tokens by estimate, so it is asked again in windows of 500 (1,500 characters), the largest of 16,000,
    # 8,000 ... under half of that: (3,200 - 187) / (1,500 - 187) is 2.3, so 3 windows.
    verdicts = judge.judge([ask("Claim.", "many words here " * 200), ask("Claim.", "A passage.")])
    assert [verdict.rule for verdict in verdicts] == ["chat", "chat"]
    assert "3 of 3 windows were read" in verdicts[0].reason


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


FIVE_DAYS = ("Refunds take five days.", "Refunds are issued within five business days.")


def judged_at(url: str, ask: Any, *, model: str = "judge", key: str = "sk-right") -> Verdict:
    options = ChatOptions.model_validate(
        {"model": model, "base_url": url, "api_key": key, "reply_tokens": 300, "retries": 0}
    )
    judge = ChatJudge(options)
    (verdict,) = judge.judge([ask(*FIVE_DAYS)])
    judge.close()
    return verdict


def test_llama_cpps_own_server_takes_the_strict_schema_and_knows_a_wrong_key(
    llama_server_url: str, ask: Any
) -> None:
    options = ChatOptions.model_validate(
        {"model": "tiny", "base_url": llama_server_url, "api_key": "sk-right", "reply_tokens": 300}
    )
    judge = ChatJudge(options)
    (verdict,) = judge.judge([ask(*FIVE_DAYS)])
    assert (verdict.label, verdict.rule, verdict.score) == (Label.UNSUPPORTED, "chat", 0.01)
    assert judge._client.dialect.reply_format is ReplyFormat.JSON_SCHEMA
    judge.close()
    wrong = judged_at(llama_server_url, ask, key="sk-wrong")
    assert wrong.rule == "auth"
    assert "Invalid API Key" in wrong.reason


def test_a_litellm_proxy_passes_the_judge_through_and_its_refusals_are_told_apart(
    proxy_url: str, base_url: str, ask: Any
) -> None:
    through = judged_at(proxy_url, ask)
    direct = judged_at(base_url, ask)
    assert (through.label, through.score, through.reason) == (direct.label, direct.score, direct.reason)
    assert through.usage is not None
    assert not through.usage.is_estimated
    assert judged_at(proxy_url, ask, model="nope").rule == "not_found"
    assert judged_at(proxy_url, ask, key="sk-wrong").rule == "auth"
