"""Messages that arrived from each node, in order and once, and the gaps between the messages."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from reliable_channel.spi import Recorder, Row, Table

from ..name import Name
from ..naming import PublicationName
from ..vector import StateVector
from .wire import Message

Key = tuple[Name, int]
"""Name of a node, and a bootstrap time of that node."""

WINDOW: Final = 256
"""Maximum number of a stream's messages that are looked for or wait for others at a time. The
maximum is needed because a state vector may name 2^64 messages."""
LOST_MESSAGES: Final = 10_000
"""Maximum number of given-up messages that are still delivered if they arrive."""

STREAMS: Final = Table(
    "svs_streams",
    (("key", "TEXT"), ("known", "TEXT"), ("settled", "TEXT")),  # numbers may pass 2^63
)
LOST: Final = Table("svs_lost", (("key", "TEXT"),))


@dataclass(slots=True)
class Stream:
    """Stream of messages from one node under one bootstrap time."""

    key: Key
    known: int = 0
    settled: int = 0
    """Number up to which all messages were delivered, given up, or not wanted."""
    parked: dict[int, Message] = field(default_factory=dict)
    """Messages that have arrived and wait for earlier messages."""
    lost_in_a_row: int = 0
    """Number of messages that were given up since the last delivery."""

    def missing(self) -> Iterator[PublicationName]:
        for seq in range(self.settled + 1, min(self.known, self.settled + WINDOW) + 1):
            if seq not in self.parked:
                yield PublicationName(*self.key, seq)


class Streams:
    """Streams of all nodes in a channel."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._streams: dict[Key, Stream] = {}
        self._lost: OrderedDict[PublicationName, None] = OrderedDict()
        self.received = StateVector()
        """What to report to others as received: all but what was given up."""

    def get(self, key: Key) -> Stream:
        """Return the stream of a node and bootstrap time. An empty stream is not stored before a
        message number of it becomes known."""
        return self._streams.get(key) or Stream(key)

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._streams.values())

    def raise_known(self, key: Key, seq: int) -> Stream:
        """Note that a stream has messages up to a number."""
        stream = self._streams.setdefault(key, Stream(key))
        if seq > stream.known:
            stream.known = seq
            self._record(stream)
        return stream

    def settle(self, stream: Stream, seq: int) -> None:
        """Stop waiting for any message of a stream up to a number."""
        self._streams[stream.key] = stream
        if seq > stream.settled:
            stream.settled = seq
            stream.known = max(stream.known, seq)
            self.received.raise_to(*stream.key, seq)
            self._record(stream)

    def is_new(self, place: PublicationName) -> bool:
        """Return True if a message has not arrived before, or was given up."""
        stream = self.get((place.node, place.bootstrap_time))
        if place.seq <= stream.settled:
            return place in self._lost
        return place.seq not in stream.parked

    def has_room_for(self, place: PublicationName) -> bool:
        """Return True if a message is not too far ahead of the delivered messages of its stream. A
        message that is too far ahead is dropped, and requested again later."""
        return place.seq <= self.get((place.node, place.bootstrap_time)).settled + WINDOW

    def take(self, place: PublicationName, message: Message) -> list[Message]:
        """Note a new message, and return the messages that can be delivered now, in order."""
        stream = self.raise_known((place.node, place.bootstrap_time), place.seq)
        if place.seq <= stream.settled:
            del self._lost[place]
            self._recorder.delete(LOST, _lost_key(place))
            return [message]
        stream.parked[place.seq] = message
        return self._ready(stream)

    def give_up(self, place: PublicationName) -> list[Message]:
        """Note that a message was not found, and return the messages that waited for it, in
        order."""
        stream = self.get((place.node, place.bootstrap_time))
        if place.seq != stream.settled + 1:
            return []
        self._lost[place] = None
        self._recorder.put(LOST, _lost_key(place))
        if len(self._lost) > LOST_MESSAGES:
            self._recorder.delete(LOST, _lost_key(self._lost.popitem(last=False)[0]))
        stream.lost_in_a_row += 1
        self.settle(stream, place.seq)
        return self._ready(stream)

    def skip(self, stream: Stream, seq: int) -> list[Message]:
        """Skip all messages up to a number, and return the messages that waited for them, in
        order."""
        for parked in [number for number in stream.parked if number <= seq]:
            del stream.parked[parked]
        self.settle(stream, seq)
        return self._ready(stream)

    def _ready(self, stream: Stream) -> list[Message]:
        ready = []
        while (message := stream.parked.pop(stream.settled + 1, None)) is not None:
            ready.append(message)
            stream.lost_in_a_row = 0
            self.settle(stream, stream.settled + 1)
        return ready

    def _record(self, stream: Stream) -> None:
        name, boot = stream.key
        self._recorder.put(STREAMS, f"{boot} {name}", str(stream.known), str(stream.settled))

    def restore(self, streams: list[Row], lost: list[Row]) -> StateVector:
        """Begin with the recorded streams, and return their state vector."""
        known = StateVector()
        for key, known_seq, settled in streams:
            boot, _, name = str(key).partition(" ")
            stream = self.raise_known((Name.parse(name), int(boot)), 0)
            stream.known, stream.settled = int(str(known_seq)), int(str(settled))
            known.raise_to(*stream.key, stream.known)
            if stream.settled:
                self.received.raise_to(*stream.key, stream.settled)
        for (key,) in lost:
            seq, boot, name = str(key).split(" ", 2)
            self._lost[PublicationName(Name.parse(name), int(boot), int(seq))] = None
        return known

    @property
    def lost(self) -> Sequence[PublicationName]:
        """Messages that were given up and have not arrived since, the oldest first."""
        return list(self._lost)


def _lost_key(place: PublicationName) -> str:
    return f"{place.seq} {place.bootstrap_time} {place.node}"
