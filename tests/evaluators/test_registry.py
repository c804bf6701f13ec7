from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from citespan.evaluators.errors import UsageError
from citespan.evaluators.judges import registry
from citespan.evaluators.judges.cached import CachedJudge
from citespan.evaluators.judges.cascade import CascadeJudge
from citespan.evaluators.judges.registry import judge_names, load_judge
from citespan.evaluators.judges.spec import JudgeSpec, parse_spec

LOCAL = "chat:tiny,base_url=http://localhost:9/v1"


def test_options_belong_to_the_judge_before_them() -> None:
    assert parse_spec("lexical") == JudgeSpec("lexical")
    assert parse_spec(" chat:org/model:7b , seed=3,base_url=http://h:1/v1?a=b ") == JudgeSpec(
        "chat", "org/model:7b", {"seed": "3", "base_url": "http://h:1/v1?a=b"}
    )
    assert parse_spec("cascade:low=0.2,high=0.8,lexical,chat:m,seed=1,entailment:dir") == JudgeSpec(
        "cascade",
        "",
        {"low": "0.2", "high": "0.8"},
        (JudgeSpec("lexical"), JudgeSpec("chat", "m", {"seed": "1"}), JudgeSpec("entailment", "dir")),
    )


def test_a_cascade_is_made_of_its_members_with_its_band() -> None:
    judge = load_judge(f"cascade:low=0.3,high=0.7,lexical,{LOCAL}")
    assert isinstance(judge, CascadeJudge)
    assert judge.card.name == "cascade:lexical,chat:tiny"
    assert judge.card.parameters["bands"] == [[0.3, 0.7]]
    assert judge.card.sends_text_to == "localhost:9"


def test_any_judge_can_keep_its_verdicts_in_a_file(tmp_path: Path) -> None:
    judge = load_judge(f"lexical,cache={tmp_path}/deep/verdicts.sqlite")
    assert isinstance(judge, CachedJudge)
    assert judge.card == load_judge("lexical").card
    assert (tmp_path / "deep" / "verdicts.sqlite").is_file()
    assert isinstance(load_judge(f"cascade:lexical,{LOCAL},cache={tmp_path}/v.sqlite"), CascadeJudge)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the judge's name is empty"),
        ("oracle", "no judge is called 'oracle': choose lexical, chat:MODEL, entailment:FOLDER, cascade:"),
        ("lexical,chat:m", "'chat' is no option: .*cascade:lexical,chat"),
        ("lexical:x", "takes no argument"),
        ("lexical,depth=3", "takes no argument and no option but cache=FILE"),
        ("chat", "needs a model, as in chat:gpt-4o-mini"),
        ("chat:gpt-4o-mini", "needs a key: set OPENAI_API_KEY, or name another endpoint by base_url=URL"),
        (f"{LOCAL},sed=3", "chat:tiny has no option 'sed': choose api_key_header, base_url, budget_tokens"),
        (f"{LOCAL},seed=x", "chat:tiny: seed 'x': Input should be a valid integer"),
        (f"{LOCAL},api_key=sk-1", "a key on the command line can be read by others"),
        ("chat:tiny,base_url=localhost:9", "base_url 'localhost:9': expected a URL such as"),
        (f"{LOCAL},budget_usd=1", "a budget in US dollars needs a price"),
        (f"{LOCAL},output_usd_per_million=1", "a price has two parts: give both"),
        (
            "chat:m@http://h:1/v1",
            "model .*: expected the model's name alone; the endpoint is .* base_url=URL",
        ),
        ("lexical,cache=", "cache= names no file: give one, as in cache=verdicts.sqlite"),
        (f"{LOCAL},redact=nowhere:hide", "redact=nowhere:hide: expected module:function"),
        ("cascade:lexical", "a cascade needs two judges or more"),
        ("cascade:", "a cascade needs two judges or more"),
        (f"cascade:lexical,{LOCAL},low=0.1", "no option 'low': .*options of the cascade itself come before"),
        (f"cascade:low=2,lexical,{LOCAL}", "cascade: low '2': Input should be less than or equal to 1"),
        (f"cascade:low=0.9,high=0.1,lexical,{LOCAL}", "low 0.9 is above high 0.1"),
        ("entailment", "needs a folder or a hub id"),
        (
            "entailment:nowhere,speed=9",
            "entailment:nowhere has no option 'speed': choose batch_size, cache, card",
        ),
    ],
)
def test_a_wrong_name_or_option_says_what_exists(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match=message):
        load_judge(name)


def test_the_environment_says_where_a_named_chat_judge_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway:4000/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert load_judge("chat:m").card.sends_text_to == "gateway:4000"
    assert load_judge("chat:m,base_url=http://other:1/v1").card.sends_text_to == "other:1"
    # A key alone never makes a chat model the judge.
    assert load_judge("lexical").card.sends_text_to is None


def test_a_wrong_key_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-geheim\u00fc")
    with pytest.raises(UsageError) as raised:
        load_judge("chat:m")
    assert "geheim" not in str(raised.value)


PLUGIN = """
from citespan.evaluators.errors import UsageError
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.judges.judge import JudgeCard

def make(spec):
    if spec.argument == "bad":
        raise UsageError("coin: heads or tails")
    if spec.argument == "broken":
        return 3 / 0
    if spec.argument == "none":
        return None
    card = JudgeCard(name=f"coin:{spec.argument}", version="1", parameters=dict(spec.options))
    return ScriptedJudge(card=card)
"""


def test_a_package_brings_a_judge_by_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "coin_judge.py").write_text(PLUGIN)
    info = tmp_path / "coin_judge-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: coin-judge\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[citespan.judges]\ncoin = coin_judge:make\nlexical = coin_judge:make\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "coin" in judge_names()
    judge = load_judge("coin:heads,bias=2")
    assert (judge.card.name, judge.card.parameters) == ("coin:heads", {"bias": "2"})
    # A built-in name stays what it is.
    assert load_judge("lexical").card.name == "lexical"
    for argument, message in [
        ("bad", "^coin: heads or tails$"),
        ("broken", "judge 'coin' of the package coin-judge cannot be loaded: ZeroDivisionError"),
        ("none", "judge 'coin' of the package coin-judge returned NoneType"),
    ]:
        with pytest.raises(UsageError, match=message):
            load_judge(f"coin:{argument}")


def test_an_entry_point_that_cannot_be_imported_is_one_line() -> None:
    point = EntryPoint("ghost", "no_such_module:make", registry.GROUP)
    assert EntryPoints([point]).select(name="ghost")
    with pytest.raises(UsageError, match="no judge is called 'ghost'"):
        load_judge("ghost")


def test_loading_the_lexical_judge_imports_neither_http_nor_models() -> None:
    code = (
        "import sys; from citespan.evaluators.judges.registry import load_judge; load_judge('lexical'); "
        "print([m for m in ('httpx', 'onnxruntime', 'tokenizers', 'numpy', 'sqlite3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
