"""Metrics in the text format that Prometheus reads."""

from collections import defaultdict
from collections.abc import Iterable

from .meters import BUCKETS_S, METERS, METRICS, Attributes, Histogram, Meters, Metric

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def prometheus_text(meters: Meters = METERS) -> str:
    """Return all metrics in the text format of Prometheus.

    `serve_health` serves the text as a page, if its argument `pages` maps `/metrics` to this
    function. Call `prometheus_text` in the event loop of the channels.
    """
    lines: dict[Metric, list[str]] = defaultdict(list)
    for (metric, attributes), count in list(meters.counters.items()):
        lines[metric].append(_line(metric.prometheus_name, attributes, count))
    for (metric, attributes), histogram in list(meters.histograms.items()):
        lines[metric] += _histogram(metric.prometheus_name, attributes, histogram)
    for metric, attributes, value in meters.gauges():
        lines[metric].append(_line(metric.prometheus_name, attributes, value))
    return "".join(_family(metric, lines[metric]) for metric in METRICS if metric in lines)


def _family(metric: Metric, lines: Iterable[str]) -> str:
    name = metric.prometheus_name
    return f"# HELP {name} {metric.description}\n# TYPE {name} {metric.kind}\n{''.join(lines)}"


def _histogram(name: str, attributes: Attributes, histogram: Histogram) -> list[str]:
    lines, so_far = [], 0
    for limit_s, count in zip((*BUCKETS_S, "+Inf"), histogram.buckets, strict=True):
        so_far += count
        lines.append(_line(f"{name}_bucket", (*attributes, ("le", str(limit_s))), so_far))
    lines.append(_line(f"{name}_sum", attributes, histogram.sum_s))
    lines.append(_line(f"{name}_count", attributes, so_far))
    return lines


def _line(name: str, attributes: Attributes, value: float) -> str:
    labels = ",".join(
        f'{key.replace(".", "_")}="{text.translate(_ESCAPES)}"' for key, text in attributes
    )
    return f"{name}{{{labels}}} {value}\n"
