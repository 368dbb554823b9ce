"""Metrics as instruments of OpenTelemetry. The module needs the extra `[otel]`."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .meters import BUCKETS_S, METERS, METRICS, Attributes, Meters, Metric

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

SYSTEM = {"messaging.system": "reliable_channel"}


def export_to_opentelemetry(
    provider: "MeterProvider | None" = None, meters: Meters = METERS
) -> None:
    """Export all metrics through a meter provider, or through the global meter provider. Call
    `export_to_opentelemetry` only once in a process.

    Raises:
        ImportError: install `reliable-channel-metrics[otel]`.
    """
    try:
        from opentelemetry.metrics import get_meter
    except ImportError as error:
        raise ImportError(
            "OpenTelemetry is missing: pip install 'reliable-channel-metrics[otel]'"
        ) from error
    meter = get_meter("reliable_channel", meter_provider=provider)
    histograms: dict[Metric, Any] = {}
    for metric in METRICS:
        described: dict[str, Any] = {"unit": metric.unit, "description": metric.description}
        if metric.kind == "counter":
            read = _counter(metric, meters)
            meter.create_observable_counter(metric.name, callbacks=[read], **described)
        elif metric.kind == "gauge":
            read = _gauge(metric, meters)
            meter.create_observable_gauge(metric.name, callbacks=[read], **described)
        else:
            histograms[metric] = meter.create_histogram(
                metric.name, explicit_bucket_boundaries_advisory=list(BUCKETS_S), **described
            )

    def record(metric: Metric, took_s: float, attributes: Attributes) -> None:
        histograms[metric].record(took_s, {**SYSTEM, **dict(attributes)})

    meters.on_time.append(record)


Read = Callable[["CallbackOptions"], "Iterable[Observation]"]


def _counter(metric: Metric, meters: Meters) -> Read:
    from opentelemetry.metrics import Observation

    def read(options: "CallbackOptions") -> "Iterable[Observation]":
        for (one, attributes), count in list(meters.counters.items()):
            if one is metric:
                yield Observation(count, {**SYSTEM, **dict(attributes)})

    return read


def _gauge(metric: Metric, meters: Meters) -> Read:
    from opentelemetry.metrics import Observation

    def read(options: "CallbackOptions") -> "Iterable[Observation]":
        for one, attributes, value in meters.gauges():
            if one is metric:
                yield Observation(value, {**SYSTEM, **dict(attributes)})

    return read
