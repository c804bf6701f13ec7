from __future__ import annotations

import uuid
from typing import Any

import pytest

from citespan.evaluators.phoenix.server import PhoenixServer
from citespan.evaluators.plugins.phoenix_evals import SCORES, experiment_evaluator
from citespan.evaluators.testing import ScriptedJudge
from citespan.evaluators.verdicts import Label

pytestmark = [pytest.mark.phoenix, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def test_an_experiment_in_phoenix_keeps_every_measure_as_a_score(server: PhoenixServer) -> None:
    from phoenix.client import Client

    client = Client(base_url=server.url)
    dataset = client.datasets.create_dataset(
        name=f"refunds-{uuid.uuid4().hex[:8]}",
        inputs=[{"question": "How long do refunds take?", "passages": ["Refunds take five business days."]}],
        outputs=[{}],
    )

    def task(input: Any) -> dict[str, object]:  # noqa: A002  # the name by which Phoenix hands it over
        return {
            "answer": "Refunds take five business days [1]. They are free.",
            "passages": input["passages"],
        }

    judge = ScriptedJudge({("Refunds take five business days.", "1"): Label.SUPPORTED})
    experiment = client.experiments.run_experiment(
        dataset=dataset, task=task, evaluators=[experiment_evaluator(judge)], print_summary=False
    )
    runs = experiment["evaluation_runs"]
    found = {run.name: run.result for run in runs}
    assert set(found) == set(SCORES.values())
    # One of two claims is cited; the one that is cited is supported.
    assert (found["cite_cov"]["score"], found["cite_cov"]["label"]) == (0.5, "1/2")
    assert (found["cite_sup"]["score"], found["cite_sup"]["label"]) == (1.0, "1/1")
    assert found["cite_links"]["label"] == "not measured"
