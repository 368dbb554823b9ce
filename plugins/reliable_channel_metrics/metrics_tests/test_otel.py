"""OpenTelemetry's own SDK gets the same figures under its names."""

import pytest

from metrics_tests.world import CHANNEL

pytest.importorskip("opentelemetry.sdk.metrics")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from reliable_channel.events import MessageReceived, MessageSent, SendingMessage
from reliable_channel_metrics import METRICS, Meters, export_to_opentelemetry


def test_counters_gauges_and_histograms_are_exported() -> None:
    reader, meters = InMemoryMetricReader(), Meters()
    export_to_opentelemetry(MeterProvider([reader], shutdown_on_exit=False), meters)
    for event in (
        SendingMessage("m", "r"),
        MessageSent("m", "r", b""),
        MessageReceived("n", "bob", b"x", 1, 0),
    ):
        meters.observe("general", "alice", event, 1_000, CHANNEL.health)
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert set(found) <= {metric.name for metric in METRICS}
    (point,) = found["messaging.client.consumed.messages"].data.data_points
    assert point.value == 1  # type: ignore[union-attr]
    assert point.attributes == {
        "messaging.system": "reliable_channel",
        "messaging.destination.name": "general",
        "messaging.client.id": "alice",
    }
    (duration,) = found["messaging.client.operation.duration"].data.data_points
    assert duration.count == 1  # type: ignore[union-attr]
    (ready,) = found["reliable_channel.ready"].data.data_points
    assert ready.value == 1  # type: ignore[union-attr]
