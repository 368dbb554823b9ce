"""Metrics of reliable channels for Prometheus and OpenTelemetry."""

from typing import TYPE_CHECKING

from reliable_channel.spi import lazy_names

if TYPE_CHECKING:
    from .meters import METERS, METRICS, Meters, Metric
    from .otel import export_to_opentelemetry
    from .prometheus import prometheus_text
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "meters": ("METERS", "METRICS", "Meters", "Metric"),
            "otel": ("export_to_opentelemetry",),
            "prometheus": ("prometheus_text",),
        },
    )

__all__ = ["METERS", "METRICS", "Meters", "Metric", "export_to_opentelemetry", "prometheus_text"]
