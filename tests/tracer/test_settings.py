"""The environment, read once: argument, then variable, then default."""

from __future__ import annotations

import pytest

from citespan.tracer.errors import ConfigurationError
from citespan.tracer.settings import GRPC, HTTP, parse_headers, protocol_for, read_settings, traces_url


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://localhost:6006", "http://localhost:6006/v1/traces"),
        ("http://localhost:6006/", "http://localhost:6006/v1/traces"),
        ("https://host/base/path", "https://host/base/path/v1/traces"),
        ("https://host/base/v1/traces", "https://host/base/v1/traces"),
        (" https://app.phoenix.arize.com/s/me ", "https://app.phoenix.arize.com/s/me/v1/traces"),
    ],
)
def test_a_base_url_and_a_whole_one_both_work(endpoint: str, url: str) -> None:
    assert traces_url(endpoint, name="endpoint") == url


@pytest.mark.parametrize("endpoint", ["localhost:6006", "ftp://host", "http://", "http://host:port", ""])
def test_an_endpoint_that_is_no_url_is_refused_by_name(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match="endpoint is"):
        traces_url(endpoint, name="endpoint")


def test_without_variables_a_local_phoenix_gets_everything_over_http() -> None:
    settings = read_settings({})
    assert (settings.url, settings.protocol) == ("http://localhost:6006/v1/traces", HTTP)
    assert settings.headers is None
    assert settings.project is None
    assert settings.attribute_limit == 10_000
    assert settings.text_limit is None


def test_phoenix_s_variables_come_before_opentelemetry_s() -> None:
    settings = read_settings(
        {
            "PHOENIX_COLLECTOR_ENDPOINT": "https://phoenix/base",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
            "PHOENIX_API_KEY": "k",
            "PHOENIX_CLIENT_HEADERS": "x-tenant=a%20b, authorization=Basic%20z",
            "PHOENIX_PROJECT_NAME": "bot",
        }
    )
    assert settings.url == "https://phoenix/base/v1/traces"
    # A header given by name counts before the one made from the key.
    assert settings.headers == {"authorization": "Basic z", "x-tenant": "a b"}
    assert settings.project == "bot"


def test_opentelemetry_s_endpoint_is_a_base_and_the_one_for_traces_is_whole() -> None:
    assert read_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}).url == "http://c:4318/v1/traces"
    assert read_settings({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/in"}).url == "http://c:4318/in"


def test_the_port_for_grpc_speaks_grpc() -> None:
    assert protocol_for("http://localhost:4317/v1/traces") == GRPC
    assert read_settings({"PHOENIX_COLLECTOR_ENDPOINT": "http://localhost:4317"}).protocol == GRPC
    chosen = {"OTEL_EXPORTER_OTLP_PROTOCOL": HTTP, "PHOENIX_COLLECTOR_ENDPOINT": "http://localhost:4317"}
    assert read_settings(chosen).protocol == HTTP


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PHOENIX_COLLECTOR_ENDPOINT", "phoenix"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many"),
        ("PHOENIX_CLIENT_HEADERS", "no equals sign"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1"),
    ],
)
def test_a_variable_that_cannot_work_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        read_settings({name: value})


def test_limits_of_the_environment_count() -> None:
    settings = read_settings(
        {
            "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "500",
            "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "100",
            "OTEL_BSP_MAX_QUEUE_SIZE": "64",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "32",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_TRACES_EXPORTER": "none",
        }
    )
    assert (settings.attribute_limit, settings.text_limit) == (500, 100)
    assert (settings.waiting_spans, settings.message_spans, settings.delay_seconds) == (64, 32, 0.2)
    assert settings.is_export_off


def test_internal_errors_are_raised_under_pytest_unless_somebody_says_otherwise() -> None:
    assert not read_settings({}).raises_internal_errors
    assert read_settings({"PYTEST_VERSION": "9"}).raises_internal_errors
    assert not read_settings(
        {"PYTEST_VERSION": "9", "CITESPAN_INTERNAL_ERRORS": "log"}
    ).raises_internal_errors
    assert read_settings({"CITESPAN_INTERNAL_ERRORS": "raise"}).raises_internal_errors


def test_header_values_are_url_encoded() -> None:
    assert parse_headers("A=b%3D%3D, c = d", name="h") == {"a": "b==", "c": "d"}
