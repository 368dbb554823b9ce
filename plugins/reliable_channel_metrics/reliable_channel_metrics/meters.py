"""Metrics of all channels in a process, counted from their events and their health.

Names and attributes follow OpenTelemetry's conventions for messaging. Counting an event changes
only a few dictionary entries. Beyond `CHANNELS` channels or `NODES` nodes, values are added up
under the name `other`.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal
from weakref import WeakMethod, ref

from reliable_channel.diagnostics import (
    NodeHealthChanged,
    SyncSent,
    TransportDegraded,
    TransportRecovered,
)
from reliable_channel.events import (
    AnyEvent,
    DeliveryFailed,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    ParticipantSeen,
    ParticipantSilent,
    SendFailed,
    SendingMessage,
    StateDegraded,
    StateRecovered,
)
from reliable_channel.health import ChannelHealth

Kind = Literal["counter", "gauge", "histogram"]
Attributes = tuple[tuple[str, str], ...]
CHANNELS: Final = 1_000
NODES: Final = 100
PENDING: Final = 10_000
"""Maximum number of own messages whose times are remembered until their acknowledgement."""
LOOK_MS: Final = 1_000
OTHER: Final = "other"
OF_HEALTH: Final = (
    NodeHealthChanged,
    StateDegraded,
    StateRecovered,
    TransportDegraded,
    TransportRecovered,
)
CHANNEL: Final = "messaging.destination.name"
PARTICIPANT: Final = "messaging.client.id"
BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)


@dataclass(frozen=True, slots=True)
class Metric:
    """Metric with its names in both exporters."""

    name: str
    kind: Kind
    unit: str
    description: str

    @property
    def prometheus_name(self) -> str:
        """Name of the metric in Prometheus, also after a collector of OpenTelemetry."""
        name = self.name.replace(".", "_")
        if self.kind == "histogram":
            return f"{name}_seconds"
        return f"{name}_total" if self.kind == "counter" else name


SENT: Final = Metric(
    "messaging.client.sent.messages", "counter", "{message}", "Own messages that were published."
)
CONSUMED: Final = Metric(
    "messaging.client.consumed.messages", "counter", "{message}", "Messages that were delivered."
)
PUBLISH_TIME: Final = Metric(
    "messaging.client.operation.duration",
    "histogram",
    "s",
    "From `send` until a node has taken the message.",
)
ACKNOWLEDGE_TIME: Final = Metric(
    "reliable_channel.acknowledgement.duration",
    "histogram",
    "s",
    "From `send` until a participant is known to have the message.",
)
FAILED: Final = Metric(
    "reliable_channel.failed.messages", "counter", "{message}", "Own messages that failed."
)
EVENTS: Final = Metric("reliable_channel.events", "counter", "{event}", "Events by name.")
LIVE: Final = Metric("reliable_channel.live", "gauge", "1", "1 while the channel runs.")
READY: Final = Metric("reliable_channel.ready", "gauge", "1", "1 while it can send and receive.")
MISSING: Final = Metric(
    "reliable_channel.missing", "gauge", "{message}", "Messages known to exist, not received yet."
)
LOST: Final = Metric("reliable_channel.lost", "gauge", "{message}", "Messages that are lost.")
UNACKNOWLEDGED: Final = Metric(
    "reliable_channel.unacknowledged",
    "gauge",
    "{message}",
    "Own messages that no participant may have.",
)
WAITING: Final = Metric(
    "reliable_channel.waiting", "gauge", "{message}", "Messages that no node has taken yet."
)
UNREAD: Final = Metric(
    "reliable_channel.unread", "gauge", "{event}", "Events that the slowest reader has not read."
)
PARTICIPANTS: Final = Metric(
    "reliable_channel.participants",
    "gauge",
    "{participant}",
    "Other participants that were heard and are not silent.",
)
NODE_UP: Final = Metric("reliable_channel.node.up", "gauge", "1", "1 while a node works.")
METRICS: Final = (
    SENT,
    CONSUMED,
    PUBLISH_TIME,
    ACKNOWLEDGE_TIME,
    FAILED,
    EVENTS,
    LIVE,
    READY,
    MISSING,
    LOST,
    UNACKNOWLEDGED,
    WAITING,
    UNREAD,
    PARTICIPANTS,
    NODE_UP,
)
"""Metrics of this package, in one list. Tests compare the documentation and the dashboard with this
list."""


@dataclass(slots=True)
class Histogram:
    """Counts of values in each bucket of a histogram."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    sum_s: float = 0.0

    def add(self, value_s: float) -> None:
        """Count a value of the histogram."""
        self.buckets[bisect_left(BUCKETS_S, value_s)] += 1
        self.sum_s += value_s


Health = Callable[[], ChannelHealth]


class Watched:
    """Health of one channel, which other threads may read, too."""

    def __init__(self, health: Health) -> None:
        # A weak reference: a figure keeps no channel in memory.
        self._health = WeakMethod(health) if hasattr(health, "__self__") else ref(health)
        self._known = health()
        self._at_ms = 0
        self._is_quiet = False

    def event(self, event: AnyEvent, at_ms: int) -> None:
        """Read the channel's health again, at most once in `LOOK_MS` or at an event about
        health."""
        was_quiet, self._is_quiet = self._is_quiet, isinstance(event, SyncSent)
        if was_quiet and self._is_quiet:
            return  # nothing happened since the last sync, and a thousand channels may be quiet
        if at_ms - self._at_ms >= LOOK_MS or isinstance(event, OF_HEALTH):
            self._at_ms = at_ms
            self.now()

    def now(self) -> ChannelHealth | None:
        """Return the channel's health, or None if the channel is closed or deleted."""
        if (health := self._health()) is None:
            return None
        with suppress(RuntimeError):  # in a thread: there is no event loop, or a table changes
            self._known = health()
        return self._known if self._known.live else None


class Meters:
    """Counters of the events of channels. Exporters read `counters`, `histograms` and
    `gauges()`."""

    def __init__(self) -> None:
        self.counters: dict[tuple[Metric, Attributes], int] = {}
        self.histograms: dict[tuple[Metric, Attributes], Histogram] = {}
        self.on_time: list[Callable[[Metric, float, Attributes], object]] = []
        """Called with each duration, in seconds."""
        self._channels: dict[tuple[str, str], Attributes] = {}
        self._watched: dict[Attributes, Watched] = {}
        self._present: dict[Attributes, set[str]] = {}
        self._began_ms: OrderedDict[tuple[Attributes, str], int] = OrderedDict()

    def observe(
        self, channel_id: str, sender_id: str, event: AnyEvent, at_ms: int, health: Health
    ) -> None:
        """Count an event of a channel."""
        attributes = self._attributes(channel_id, sender_id)
        if (watched := self._watched.get(attributes)) is None:
            watched = self._watched[attributes] = Watched(health)
        watched.event(event, at_ms)
        self._count(EVENTS, (*attributes, ("event", event.wire_name)))
        match event:
            case MessageReceived():
                self._count(CONSUMED, attributes)
            case SendingMessage():
                self._began(attributes, event.message_id, at_ms)
            case MessageSent():
                self._count(SENT, attributes)
                self._time(PUBLISH_TIME, attributes, event.message_id, at_ms)
            case MessageAcknowledged():
                self._time(ACKNOWLEDGE_TIME, attributes, event.message_id, at_ms)
                self._began_ms.pop((attributes, event.message_id), None)
            case ParticipantSeen():
                self._present.setdefault(attributes, set()).add(event.sender_id)
            case ParticipantSilent():
                self._present.setdefault(attributes, set()).discard(event.sender_id)
            case SendFailed() | DeliveryFailed():
                self._count(FAILED, (*attributes, ("error.type", event.wire_name)))
                self._began_ms.pop((attributes, event.message_id), None)

    def gauges(self) -> Iterator[tuple[Metric, Attributes, int]]:
        """Yield the present health of every open channel."""
        nodes: dict[str, int] = {}
        for attributes, watched in list(self._watched.items()):
            if (health := watched.now()) is None:
                self._watched.pop(attributes, None)  # an event of its next life brings it back
                self._present.pop(attributes, None)
                continue
            for metric, value in (
                (LIVE, health.live),
                (READY, health.ready),
                (MISSING, health.missing),
                (LOST, health.lost),
                (UNACKNOWLEDGED, health.unacknowledged),
                (WAITING, health.waiting_to_be_sent),
                (UNREAD, health.events_unread),
                (PARTICIPANTS, len(self._present.get(attributes, ()))),
            ):
                yield metric, attributes, int(value)
            for node in health.nodes:
                name = node.address if node.address in nodes or len(nodes) < NODES else OTHER
                up = int(node.state == "healthy")
                nodes[name] = min(nodes.get(name, 1), up)
        for address, up in nodes.items():
            yield NODE_UP, (("server.address", _without_secret(address)),), up

    def _attributes(self, channel_id: str, sender_id: str) -> Attributes:
        key = channel_id, sender_id
        if (found := self._channels.get(key)) is None:
            if len(self._channels) >= CHANNELS:
                key = OTHER, OTHER
            found = self._channels[key] = ((CHANNEL, key[0]), (PARTICIPANT, key[1]))
        return found

    def _count(self, metric: Metric, attributes: Attributes) -> None:
        self.counters[metric, attributes] = self.counters.get((metric, attributes), 0) + 1

    def _began(self, attributes: Attributes, message_id: str, at_ms: int) -> None:
        self._began_ms[attributes, message_id] = at_ms
        if len(self._began_ms) > PENDING:
            self._began_ms.popitem(last=False)

    def _time(self, metric: Metric, attributes: Attributes, message_id: str, at_ms: int) -> None:
        if (began_ms := self._began_ms.get((attributes, message_id))) is None:
            return  # it was sent before this process began, or is one of very many
        took_s = max(0, at_ms - began_ms) / 1000
        key = metric, attributes
        if (histogram := self.histograms.get(key)) is None:
            histogram = self.histograms[key] = Histogram()
        histogram.add(took_s)
        for call in self.on_time:
            call(metric, took_s, attributes)


METERS: Final = Meters()
"""Meters that count all channels of this process."""


def observe(channel_id: str, sender_id: str, event: AnyEvent, at_ms: int, health: Health) -> None:
    """Count an event of a channel of this process."""
    METERS.observe(channel_id, sender_id, event, at_ms, health)


def _without_secret(address: str) -> str:
    """An address without the token of its node."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
