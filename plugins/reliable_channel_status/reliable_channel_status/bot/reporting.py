"""Reports of a bot to its operator, as log records with fields and as counters.

Every record has a short name and fields, as in `handler_failed handler='ping'`. `JsonLines` writes
each record as one line of JSON. The bot does not log keys or the texts of messages.
"""

import json
import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

LOG: Final = logging.getLogger("reliable_channel_status.bot")


REMEMBERED: Final = 200
"""Number of log records that `Reporter.since` can return."""


@dataclass(frozen=True, slots=True)
class Logged:
    number: int
    event: str
    fields: dict[str, Any]


class Reporter:
    """Counts events, and logs the important ones."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        """By name and by what of: `("refused", "not_for_us")`."""
        self.logged = 0
        """Log records so far."""
        self._records: deque[Logged] = deque(maxlen=REMEMBERED)
        self.metrics_url: str | None = None
        """Where Prometheus finds the counts while the bot runs with a `metrics_port`."""

    def count(self, name: str, of: str = "") -> None:
        self.counts[name, of] += 1

    def log(
        self, event: str, level: int = logging.INFO, *, error: bool = False, **fields: object
    ) -> None:
        """Write a log record with a name and fields. With `error`, the record contains the current
        exception."""
        self.logged += 1
        self._records.append(Logged(self.logged, event, fields))
        text = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
        extra = {"event": event, "fields": fields}
        LOG.log(level, "%s", text, extra=extra, exc_info=error)

    def since(self, logged: int) -> list[Logged]:
        """Return the remembered log records after the given number."""
        return [record for record in self._records if record.number > logged]


class JsonLines(logging.Formatter):
    """Formatter that writes each log record as a line of JSON with time, level, event and
    fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a log record of any package as a line of JSON."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            **getattr(record, "fields", {"text": record.getMessage()}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def write_to_stderr() -> None:
    """Write log records to standard error as JSON lines, unless logging is already set up."""
    if not logging.root.handlers and not LOG.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(JsonLines())
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)


PREFIX = "status_bot_"


class MetricsUnavailable(ImportError):
    """Error that the package `prometheus-client` is not installed."""


@contextmanager
def served(reporter: Reporter, port: int | None) -> Iterator[None]:
    """Serve the counters at `http://127.0.0.1:port/metrics` inside the context.

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
            for (name, of), count in dict(reporter.counts).items():
                families[name][of] = count
            for name, counts in families.items():
                family = CounterMetricFamily(PREFIX + name, name.replace("_", " "), labels=["of"])
                for of, count in counts.items():
                    family.add_metric([of], count)
                yield family

    registry = CollectorRegistry()
    registry.register(Counts())
    server, thread = start_http_server(port, addr="127.0.0.1", registry=registry)
    reporter.metrics_url = f"http://127.0.0.1:{server.server_port}/metrics"
    try:
        yield
    finally:
        reporter.metrics_url = None
        server.shutdown()
        server.server_close()
        thread.join()
