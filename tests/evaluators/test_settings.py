from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citespan.evaluators.errors import UsageError
from citespan.evaluators.options import CitationScope
from citespan.evaluators.settings import VARIABLES, Settings

SOURCES = Path(__file__).parents[2] / "evaluators"


def load(**environ: str) -> Settings:
    return Settings.load(environ=environ)


def test_an_argument_wins_over_a_variable_and_a_variable_over_the_default() -> None:
    assert Settings.load(environ={}).project == "default"
    assert Settings.load(environ={"PHOENIX_PROJECT_NAME": "shop"}).project == "shop"
    assert Settings.load(environ={"PHOENIX_PROJECT_NAME": "shop"}, project="desk").project == "desk"


def test_the_more_particular_variable_wins() -> None:
    settings = load(CITESPAN_PROJECT="a", PHOENIX_PROJECT="b", PHOENIX_PROJECT_NAME="c")
    assert settings.project == "a"
    assert settings.origins["project"] == "CITESPAN_PROJECT"


def test_an_empty_variable_counts_as_unset() -> None:
    assert load(PHOENIX_API_KEY="", PHOENIX_PROJECT_NAME="  ").project == "default"
    assert load(PHOENIX_API_KEY="").api_key is None


@pytest.mark.parametrize(
    ("given_url", "endpoint"),
    [
        ("http://localhost:6006/v1/traces", "http://localhost:6006"),
        ("http://localhost:6006/", "http://localhost:6006"),
        ("https://app.example.com/s/team", "https://app.example.com/s/team"),
        ("https://app.example.com/s/team/v1/traces/", "https://app.example.com/s/team"),
        ("http://[::1]:6006", "http://[::1]:6006"),
        ("localhost:6006", "http://localhost:6006"),
    ],
)
def test_a_collector_endpoint_keeps_its_root_path_and_loses_the_otlp_path(
    given_url: str, endpoint: str
) -> None:
    assert load(PHOENIX_COLLECTOR_ENDPOINT=given_url).endpoint == endpoint


@pytest.mark.parametrize(
    ("environ", "endpoint"),
    [
        ({"PHOENIX_HOST": "phoenix.internal"}, "http://phoenix.internal:6006"),
        ({"PHOENIX_HOST": "0.0.0.0", "PHOENIX_PORT": "7007"}, "http://localhost:7007"),
        ({"PHOENIX_HOST": "::1"}, "http://[::1]:6006"),
        ({"PHOENIX_HOST": "https://phoenix", "PHOENIX_PORT": "443"}, "https://phoenix:443"),
        ({"PHOENIX_PORT": "7007", "PHOENIX_HOST_ROOT_PATH": "/px/"}, "http://localhost:7007/px"),
    ],
)
def test_host_port_and_root_path_make_an_endpoint(environ: dict[str, str], endpoint: str) -> None:
    assert Settings.load(environ=environ).endpoint == endpoint


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host:port", "http://[::1", "host/?a=b"])
def test_an_endpoint_that_is_no_url_is_an_error_that_names_its_variable(url: str) -> None:
    with pytest.raises(UsageError, match=r"PHOENIX_BASE_URL is .*expected a URL such as"):
        load(PHOENIX_BASE_URL=url)


def test_the_key_is_sent_as_bearer_unless_a_header_says_otherwise() -> None:
    assert load(PHOENIX_API_KEY="k").request_headers == {"authorization": "Bearer k"}
    both = load(PHOENIX_API_KEY="k", PHOENIX_CLIENT_HEADERS="Authorization=Basic%20eA==,x-team=a%2Cb")
    assert both.request_headers == {"authorization": "Basic eA==", "x-team": "a,b"}


def test_secrets_appear_in_no_message_and_no_representation() -> None:
    settings = load(PHOENIX_API_KEY="hunter2", PHOENIX_CLIENT_HEADERS="x-key=hunter2")
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in settings.model_dump_json()
    with pytest.raises(UsageError) as raised:
        load(PHOENIX_CLIENT_HEADERS="hunter2")
    assert "hunter2" not in str(raised.value)
    assert "PHOENIX_CLIENT_HEADERS: entry 1" in str(raised.value)


def test_a_value_outside_its_choices_names_variable_value_and_choices() -> None:
    with pytest.raises(UsageError, match=r"CITESPAN_CITATION_SCOPE is 'page': .*'sentence' or 'paragraph'"):
        load(CITESPAN_CITATION_SCOPE="page")
    with pytest.raises(UsageError, match=r"CITESPAN_TIMEOUT_SECONDS is '-1'"):
        load(CITESPAN_TIMEOUT_SECONDS="-1")
    with pytest.raises(UsageError, match=r"--project is ''"):
        Settings.load(environ={}, project="")


def test_options_follow_the_settings() -> None:
    assert load(CITESPAN_CITATION_SCOPE="paragraph").options.citation_scope is CitationScope.PARAGRAPH


@given(
    st.dictionaries(
        st.sampled_from(
            [name for names in VARIABLES.values() for name in names] + ["PHOENIX_HOST", "PHOENIX_PORT"]
        ),
        st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=20),
    )
)
def test_any_environment_gives_settings_or_a_usage_error(environ: dict[str, str]) -> None:
    message = ""
    try:
        Settings.load(environ=environ)
    except UsageError as error:
        message = str(error)
    assert "\n" not in message


def test_only_settings_reads_variables() -> None:
    """Handing the whole environment down to a subprocess reads no variable."""
    reads = re.compile(r"\bos\.(getenv|environ(?!\.(items|copy)\(\)))")
    readers = [path.name for path in SOURCES.rglob("*.py") if reads.search(path.read_text(encoding="utf-8"))]
    assert readers == ["settings.py"]
