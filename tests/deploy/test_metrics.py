"""Every metric, label and query of the dashboard, the alert rules and README is one that the worker serves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from citespan.evaluators.judges.judge import JudgeCard
from citespan.evaluators.measures import MEASURES
from citespan.evaluators.periodic.metrics import WorkerMetrics
from citespan.evaluators.periodic.plan import Plan

SCRAPED = frozenset({"job", "instance"})
"""Labels that Prometheus adds."""

UNITS = frozenset({"percentunit", "short", "s", "cps", "bytes", "currencyUSD"})
"""Units as Grafana names them: a share of 1, a count, seconds, a count a second, bytes, dollars."""

VARIABLES = {"$__rate_interval": "1m", "$__range": "24h", "$window": "1h", "$project": ".*"}
"""What Grafana puts into a query."""

TOPICS = {
    "coverage": "coverage",
    "support": "support",
    "gap": "(coverage) - (support)",
    "unjudged by reason": "citespan_claims_unjudged_total",
    "lag": "citespan_lag_seconds",
    "cost": "citespan_judge_cost_usd_total",
    "tokens": "citespan_judge_tokens_total",
    "judge latency": "citespan_judge_duration_seconds_bucket",
    "traces taken": "citespan_traces_taken_total",
    "traces skipped": "citespan_traces_skipped_total",
    "Phoenix errors": "citespan_phoenix_errors_total",
}
"""What the dashboard has to show, and what its query has to hold."""


@dataclass(frozen=True)
class Catalogue:
    """What a worker serves: the labels of each series by its name, with the values of each label."""

    series: Mapping[str, Mapping[str, frozenset[str]]]
    records: frozenset[str]
    """What the rules record besides."""

    def complaints(self, query: str) -> list[str]:
        """Return what is wrong with a query: a metric, label or value that a worker does not serve."""
        selectors = list(_selectors(promql_parser.parse(query)))
        found = [c for selector in selectors for c in self._selector_complaints(selector)]
        made = re.findall(r'label_replace\(.*?, "(\w+)", "\$', query)
        recorded = {"project", "measure"}
        known = SCRAPED.union(made, recorded, *(self.series.get(s.name, {}) for s in selectors))
        lists = re.findall(r"\b(?:by|on|group_left)\s*\(([^()]*)\)", query)
        named = {label.strip() for some in lists for label in some.split(",")}
        return [*found, *(f"label {label} is in none of {query}" for label in sorted(named - known))]

    def _selector_complaints(self, selector: promql_parser.VectorSelector) -> list[str]:
        if selector.name == "up" or selector.name in self.records:
            return []
        labels = self.series.get(selector.name)
        if labels is None:
            return [f"no metric {selector.name}"]
        found: list[str] = []
        for matcher in selector.matchers.matchers:
            if matcher.name not in labels and matcher.name not in SCRAPED:
                found.append(f"{selector.name} has no label {matcher.name}")
            elif matcher.op in (promql_parser.MatchOp.Equal, promql_parser.MatchOp.NotEqual):
                values = labels.get(matcher.name, frozenset({matcher.value}))
                if matcher.value not in values:
                    found.append(f"{selector.name} has no {matcher.name} {matcher.value}")
        return found


def _selectors(expression: Any) -> Iterator[promql_parser.VectorSelector]:
    found: list[promql_parser.VectorSelector] = []

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(expression, visit)
    return iter(found)


@pytest.fixture(scope="module")
def rules(deploy: Path) -> list[Mapping[str, Any]]:
    data = yaml.safe_load((deploy / "prometheus/citespan.rules.yml").read_text())
    return [rule for group in data["groups"] for rule in group["rules"]]


@pytest.fixture(scope="module")
def catalogue(rules: list[Mapping[str, Any]]) -> Catalogue:
    """What the real metrics serve once each of them has a value."""
    metrics = WorkerMetrics()
    metrics.show("1", Plan(project="shop"), JudgeCard(name="lexical", version="1"))
    for counter in (metrics.failures, metrics.states, metrics.unjudged, metrics.errors):
        counter.labels("some")
    for measure in MEASURES:
        metrics.ratios.labels(measure)
    series: dict[str, dict[str, frozenset[str]]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            labels = series.setdefault(sample.name, {})
            for name, value in sample.labels.items():
                labels[name] = labels.get(name, frozenset()) | {value}
    return Catalogue(series, frozenset(rule["record"] for rule in rules if "record" in rule))


@pytest.fixture(scope="module")
def dashboard(deploy: Path) -> Mapping[str, Any]:
    return json.loads((deploy / "grafana/dashboards/citespan.json").read_text())


@pytest.fixture(scope="module")
def panels(dashboard: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def filled(query: str) -> str:
    """Return a dashboard's query as Grafana asks it."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return query


def test_every_query_of_the_dashboard_asks_for_what_a_worker_serves(
    panels: list[Mapping[str, Any]], catalogue: Catalogue
) -> None:
    queries = [filled(target["expr"]) for panel in panels for target in panel["targets"]]
    assert len(queries) > 30
    assert [c for query in queries for c in catalogue.complaints(query)] == []


def test_every_legend_names_a_label_of_its_query(
    panels: list[Mapping[str, Any]], catalogue: Catalogue
) -> None:
    for panel in panels:
        for target in panel["targets"]:
            names = {s.name for s in _selectors(promql_parser.parse(filled(target["expr"])))}
            labels = SCRAPED.union(*(catalogue.series[name] for name in names))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels, panel["title"]


def test_every_rule_asks_for_what_a_worker_serves(
    rules: list[Mapping[str, Any]], catalogue: Catalogue
) -> None:
    assert [c for rule in rules for c in catalogue.complaints(rule["expr"])] == []


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("citespan_lag_secondz > 1", "no metric citespan_lag_secondz"),
        ('citespan_claims_total{lable="unjudged"}', "citespan_claims_total has no label lable"),
        ('citespan_claims_total{label="unjugded"}', "citespan_claims_total has no label unjugded"),
        ("sum by (reazon) (citespan_claims_unjudged_total)", "label reazon is in none"),
    ],
)
def test_a_query_for_what_no_worker_serves_is_found(query: str, complaint: str, catalogue: Catalogue) -> None:
    assert any(complaint in found for found in catalogue.complaints(query))


def test_a_query_that_does_not_parse_is_found() -> None:
    with pytest.raises(ValueError, match="parenthesis"):
        promql_parser.parse("sum by (label (citespan_claims_total)")


def test_every_metric_named_in_any_file_exists(texts: Mapping[str, str], catalogue: Catalogue) -> None:
    families = {re.sub(r"_(total|bucket|count|sum|created)$", "", name) for name in catalogue.series}
    known = families | set(catalogue.series)
    records = {name.split(":")[1] for name in catalogue.records}

    def metrics_in(text: str) -> set[str]:
        return set(re.findall(r"\bcitespan_[a-z0-9_]+\b", text)) - known - records

    wrong = {name: found for name, text in texts.items() if (found := metrics_in(text))}
    assert wrong == {}
    assert metrics_in("citespan_lag") == {"citespan_lag"}


def test_the_dashboard_shows_what_an_operator_asks(panels: list[Mapping[str, Any]]) -> None:
    queries = [target["expr"] for panel in panels for target in panel["targets"]]

    def is_shown(needle: str) -> bool:
        if needle.startswith("("):  # a gap: coverage minus support
            return any(
                re.search(r'measure="coverage".*\) - \(.*measure="support"', query, re.DOTALL)
                for query in queries
            )
        return any(needle in query for query in queries)

    assert [topic for topic, needle in TOPICS.items() if not is_shown(needle)] == []


def test_every_panel_says_what_it_shows_and_in_what_unit(panels: list[Mapping[str, Any]]) -> None:
    for panel in panels:
        defaults = panel["fieldConfig"]["defaults"]
        assert len(panel["description"]) > 20, panel["title"]
        assert defaults["unit"] in UNITS, panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]


def test_no_panel_makes_a_zero_of_no_data(panels: list[Mapping[str, Any]]) -> None:
    for panel in panels:
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["noValue"] in ("no data", "fewer than 50 claims"), panel["title"]
        assert defaults.get("custom", {}).get("spanNulls", False) is False, panel["title"]
        for target in panel["targets"]:
            assert "vector(" not in target["expr"], panel["title"]


def test_panels_lie_beside_each_other(dashboard: Mapping[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


def test_grafana_finds_dashboard_and_data_where_compose_puts_them(
    deploy: Path, compose: Mapping[str, Any], dashboard: Mapping[str, Any]
) -> None:
    grafana = compose["services"]["grafana"]
    provider = yaml.safe_load((deploy / "grafana/provisioning/dashboards/citespan.yaml").read_text())
    source = yaml.safe_load((deploy / "grafana/provisioning/datasources/prometheus.yaml").read_text())
    folder = provider["providers"][0]["options"]["path"]
    mounts = dict(volume.split(":")[:2] for volume in grafana["volumes"])
    assert mounts["./grafana/dashboards"] == folder
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == f"{folder}/citespan.json"
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    names = [variable["name"] for variable in dashboard["templating"]["list"]]
    assert names == ["datasource", "project", "window"]
