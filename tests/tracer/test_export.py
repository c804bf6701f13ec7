"""`configure()`: what goes where. Each test is a process of its own, for the provider is global."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

from citespan import tracer
from citespan.tracer import ConfigurationError

Script = Callable[..., str]


@pytest.fixture
def script() -> Script:
    """Run Python code in a fresh process and return what it prints."""

    def run(code: str, **environment: str) -> str:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OTEL_", "PHOENIX_", "PYTEST_"))
        }
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PRELUDE + textwrap.dedent(code)],
            env={**kept, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


PRELUDE = """
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from citespan import tracer

class Memory(InMemorySpanExporter):
    def names(self):
        return [span.name for span in self.get_finished_spans()]

def ask(name="run", passages=1):
    with tracer.run("q", name=name) as run:
        run.retrieved([{"id": str(n), "text": "t", "score": 1.0, "metadata": {"n": n}} for n in range(passages)])
        run.answer("a")
"""


def test_a_provider_is_made_and_set_where_there_is_none(script: Script) -> None:
    out = script("""
        memory = Memory()
        made = tracer.configure(project="bot", exporter=memory)
        ask()
        assert made.flush()
        span = memory.get_finished_spans()[0]
        print(trace.get_tracer_provider() is made.provider, span.resource.attributes["openinference.project.name"])
        with trace.get_tracer("other").start_as_current_span("other"):
            pass
        tracer.shutdown()
        print(memory.names())
    """)
    assert out.splitlines() == ["True bot", "['retrieval', 'run', 'other']"]


def test_a_provider_of_the_app_is_used_and_gets_no_second_exporter(script: Script) -> None:
    out = script(
        """
        memory = Memory()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(memory))
        trace.set_tracer_provider(provider)
        configured = tracer.configure()
        ask()
        print(configured.url, configured.provider is provider, memory.names())
        """,
        PHOENIX_COLLECTOR_ENDPOINT="http://localhost:1",
    )
    assert out == "None True ['retrieval', 'run']"


def test_with_an_exporter_of_its_own_both_get_the_spans(script: Script) -> None:
    out = script("""
        theirs, ours = Memory(), Memory()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(theirs))
        trace.set_tracer_provider(provider)
        tracer.configure(exporter=ours, batch=False)
        ask()
        print(theirs.names(), ours.names())
    """)
    assert out == "['retrieval', 'run'] ['retrieval', 'run']"


def test_a_limit_of_128_attributes_does_not_lose_passages(script: Script) -> None:
    """The SDK's default drops the oldest attributes, so question and first passages go first."""
    out = script("""
        memory = Memory()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(memory))
        trace.set_tracer_provider(provider)
        ask("before", passages=200)
        tracer.configure()
        ask("after", passages=200)
        for span in memory.get_finished_spans():
            print(span.name, len(span.attributes), span.dropped_attributes)
    """)
    # 200 passages of four attributes, and the kind.
    assert out.splitlines() == ["retrieval 801 0", "before 4 0", "retrieval 801 0", "after 4 0"]


def test_a_length_limit_cuts_texts_visibly_and_leaves_the_record_whole(script: Script) -> None:
    out = script(
        """
        from citespan.tracer.attributes import RunRecord
        memory = Memory()
        tracer.configure(exporter=memory, batch=False)
        with tracer.run("a long question, twice as long as allowed") as run:
            run.retrieved(["a passage that is too long"])
        with trace.get_tracer("other").start_as_current_span("other", attributes={"k": "x" * 99}):
            pass
        retrieval, run, other = memory.get_finished_spans()
        print(run.attributes["input.value"])
        print(RunRecord.from_json(run.attributes["citespan.run"]).cut)
        print(len(other.attributes["k"]))
        """,
        OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT="20",
    )
    # 41 code points, 20 kept.
    assert out.splitlines()[0] == "a long question, twi… [21 characters not recorded]"
    assert out.splitlines()[1].startswith("('passage:text-")
    assert out.splitlines()[1].endswith("'question')")
    assert out.splitlines()[2] == "20"


def test_configuring_again_replaces_and_sends_what_waits(script: Script) -> None:
    """A notebook runs its first cell twice: nothing may be sent twice."""
    out = script("""
        first, second = Memory(), Memory()
        tracer.configure(exporter=first)
        ask("one")
        tracer.configure(exporter=second)
        ask("two")
        tracer.shutdown()
        ask("three")
        print(first.names(), second.names())
    """)
    assert out == "['retrieval', 'one'] ['retrieval', 'two']"


def test_a_provider_that_takes_added_processors_for_replacements_keeps_its_exporter(script: Script) -> None:
    """`phoenix.otel.TracerProvider` does, unless it is told not to."""
    out = script("""
        class PhoenixProvider(TracerProvider):
            def add_span_processor(self, processor, replace_default_processor=True):
                if replace_default_processor:
                    raise SystemExit("the app's exporter is gone")
                super().add_span_processor(processor)

        trace.set_tracer_provider(PhoenixProvider())
        memory = Memory()
        tracer.configure(exporter=memory, batch=False)
        ask()
        print(memory.names())
    """)
    assert out == "['retrieval', 'run']"


def test_unsampled_runs_record_nothing_and_stay_unsampled_inside(script: Script) -> None:
    out = script(
        """
        memory = Memory()
        tracer.configure(exporter=memory, batch=False)
        with tracer.run("q") as run:
            run.retrieved(["p"])
            with trace.get_tracer("other").start_as_current_span("inside"):
                pass
            run.answer("a")
        print(run.is_recording, memory.names())
        """,
        OTEL_TRACES_SAMPLER="always_off",
    )
    assert out == "False []"


def test_without_configure_and_provider_the_app_just_runs(script: Script) -> None:
    assert (
        script("""
        ask()
        with tracer.run("q") as run:
            print(run.is_recording, run.trace_id)
    """)
        == "False " + "0" * 32
    )


def test_with_the_sdk_disabled_the_app_just_runs(script: Script) -> None:
    assert script("tracer.configure(); ask(); print('ran')", OTEL_SDK_DISABLED="true") == "ran"


def test_export_can_be_turned_off(script: Script) -> None:
    assert script("print(tracer.configure().url); ask()", OTEL_TRACES_EXPORTER="none") == "None"


def test_the_exporter_is_imported_by_configure_alone(script: Script) -> None:
    assert (
        script("""
        import sys
        print("opentelemetry.exporter.otlp.proto.http" in sys.modules, "requests" in sys.modules)
    """)
        == "False False"
    )


def test_endpoint_key_and_headers_reach_the_server(script: Script) -> None:
    out = script(
        """
        import http.server, threading
        seen = []
        class Server(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                seen.append((self.path, self.headers["authorization"], self.headers["x-tenant"], self.headers["x-otel"]))
                self.send_response(200)
                self.end_headers()
            def log_message(self, *args):
                pass
        server = http.server.HTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}/base"
        configured = tracer.configure(endpoint=endpoint, api_key="key", headers={"X-Tenant": "t"})
        ask()
        tracer.shutdown()
        server.shutdown()
        server.server_close()
        print(configured.url.removeprefix(endpoint), seen)
        """,
        OTEL_EXPORTER_OTLP_HEADERS="x-otel=o",
    )
    assert out == "/v1/traces [('/base/v1/traces', 'Bearer key', 't', 'o')]"


def test_grpc_reaches_its_server_too(script: Script) -> None:
    out = script("""
        from concurrent import futures
        import grpc
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as services
        seen = []
        class Server(services.TraceServiceServicer):
            def Export(self, request, context):
                names = [s.name for r in request.resource_spans for c in r.scope_spans for s in c.spans]
                seen.append((names, dict(context.invocation_metadata())["authorization"]))
                return messages.ExportTraceServiceResponse()
        server = grpc.server(futures.ThreadPoolExecutor(1))
        services.add_TraceServiceServicer_to_server(Server(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        tracer.configure(endpoint=f"http://127.0.0.1:{port}", protocol="grpc", api_key="key")
        ask()
        tracer.shutdown()
        server.stop(None)
        print(seen)
    """)
    assert out == "[(['retrieval', 'run'], 'Bearer key')]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"endpoint": "localhost"}, "endpoint is 'localhost'"),
        ({"protocol": "udp"}, "protocol is 'udp'"),
        ({"project": " "}, "project is empty"),
        ({"api_key": ""}, "api_key is empty"),
        ({"max_waiting_bytes": 0}, "max_waiting_bytes is 0"),
        ({"redaction": "hide"}, "redaction is str"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        tracer.configure(**arguments)  # type: ignore[arg-type]
