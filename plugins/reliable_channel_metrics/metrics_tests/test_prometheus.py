"""Prometheus' own parser reads the page, and the board asks for what is exported."""

import json
import re
from importlib.resources import files
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from metrics_tests.world import ACKNOWLEDGED, Channel, observed
from reliable_channel.diagnostics import NodeHealth
from reliable_channel.events import DeliveryFailed, MessageReceived, MessageSent, SendingMessage
from reliable_channel_metrics import METRICS, prometheus_text
from waku.node.metrics import METRICS as NODE_METRICS

BOARD = json.loads(files("reliable_channel_metrics").joinpath("grafana.json").read_text())
PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
CHANNEL = Channel(nodes=(NodeHealth("http://a:1", "healthy", "", 0),))
FULL = observed(
    (SendingMessage("m", "r"), 1_000),
    (MessageSent("m", "r", b""), 1_100),
    (ACKNOWLEDGED, 3_000),
    (MessageReceived("n", "bob", b"x", 1, 0), 3_000),
    (DeliveryFailed("p", 3, "nobody"), 3_000),
    channel=CHANNEL,
)


def exported() -> dict[str, set[str]]:
    """The label names of every series of a page with everything on it."""
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(prometheus_text(FULL))
        for sample in family.samples
    }


def test_every_metric_is_on_the_page() -> None:
    families = {f.name: f.type for f in text_string_to_metric_families(prometheus_text(FULL))}
    assert families == {
        metric.prometheus_name.removesuffix("_total"): metric.kind for metric in METRICS
    }


def test_the_board_asks_for_series_and_labels_that_are_exported() -> None:
    series = exported()
    queries = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    of_nodes = [query for query in queries if "waku_" in query]
    assert of_nodes
    for query in of_nodes:
        assert set(re.findall(r"\bwaku_\w+", query)) <= set(NODE_METRICS), query
    queries = [query for query in queries if query not in of_nodes]
    queries += [one["query"] for one in BOARD["templating"]["list"] if one["type"] == "query"]
    asked = set()
    for query in queries:
        names = set(re.findall(r"\b(?:reliable_channel|messaging_client)_\w+", query)) - {
            "messaging_client_id"
        }
        assert names and names <= set(series), query
        asked |= names
        of_query = set.intersection(*(series[name] for name in names))
        labels = set(re.findall(r"(\w+)=~", query))
        for group in re.findall(r"by \(([^)]*)\)", query):
            labels |= {label.strip() for label in group.split(",")}
        assert labels <= of_query, query
    wanted = {metric.prometheus_name for metric in METRICS}
    shown = {re.sub(r"_bucket$", "", name) for name in asked}
    assert shown == wanted, "every metric is on the board"


def test_the_page_lists_every_metric() -> None:
    page = PAGE.read_text()
    assert [metric.name for metric in METRICS if f"`{metric.name}`" not in page] == []
