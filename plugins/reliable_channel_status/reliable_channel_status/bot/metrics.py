"""Counts for Prometheus. Only this module needs `prometheus-client`, if a port is given."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from .watching import Watch

PREFIX = "status_bot_"


class MetricsUnavailable(ImportError):
    """`prometheus-client` is not installed."""


@contextmanager
def served(watch: Watch, port: int | None) -> Iterator[None]:
    """Serve the counts at `http://127.0.0.1:port/metrics` for the time of a block.

    Raises:
        MetricsUnavailable: install `reliable-channel-status[metrics]`.
        OSError: the port is taken.
    """
    if port is None:
        yield
        return
    try:
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.core import CounterMetricFamily
    except ImportError as error:
        raise MetricsUnavailable(
            "metrics_port needs prometheus-client: pip install 'reliable-channel-status[metrics]'"
        ) from error

    class Counts:
        """Reads the counts when Prometheus asks, so that counting costs nothing more."""

        def collect(self) -> Iterator[CounterMetricFamily]:
            """One family for each name."""
            families: dict[str, dict[str, int]] = defaultdict(dict)
            for (name, of), count in dict(watch.counts).items():
                families[name][of] = count
            for name, counts in families.items():
                family = CounterMetricFamily(PREFIX + name, name.replace("_", " "), labels=["of"])
                for of, count in counts.items():
                    family.add_metric([of], count)
                yield family

    registry = CollectorRegistry()
    registry.register(Counts())
    server, thread = start_http_server(port, addr="127.0.0.1", registry=registry)
    watch.metrics_url = f"http://127.0.0.1:{server.server_port}/metrics"
    try:
        yield
    finally:
        watch.metrics_url = None
        server.shutdown()
        server.server_close()
        thread.join()
