"""Two connections without a network between them: bytes of one are given to the other, cut as a
test wants."""

from collections.abc import Callable, Iterator
from random import Random

from waku.libp2p import (
    Connected,
    Connection,
    ConnectionEvent,
    KeyType,
    Limits,
    PeerId,
    PrivateKey,
    Received,
    StaticKeys,
)
from waku.libp2p.connection import MUXERS

DIALLER = PrivateKey(KeyType.SECP256K1, b"\x01" * 32)
LISTENER = PrivateKey(KeyType.ED25519, b"\x02" * 32)

Cut = Callable[[bytes], Iterator[bytes]]


def whole(data: bytes) -> Iterator[bytes]:
    if data:
        yield data


def at_random(random: Random, longest: int = 100) -> Cut:
    def cut(data: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(data):
            size = random.randint(1, longest)
            yield data[at : at + size]
            at += size

    return cut


class Pair:
    """A dialler and a listener; `pump` carries bytes until both are silent."""

    def __init__(
        self,
        *,
        cut: Cut = whole,
        dialler_muxers: tuple[str, ...] = MUXERS,
        listener_muxers: tuple[str, ...] = MUXERS,
        in_noise: tuple[bool, bool] = (True, True),
        expected: PeerId | None = LISTENER.peer_id,
        protocols: tuple[str, ...] = ("/echo/1",),
        dialler_limits: Limits | None = None,
        listener_limits: Limits | None = None,
    ) -> None:
        self.now_ms = 0
        self._cut = cut
        self.dialler = Connection(
            dialler=True,
            identity=DIALLER,
            keys=StaticKeys.from_random(bytes(range(64))),
            now_ms=0,
            expected=expected,
            muxers=dialler_muxers,
            muxers_in_noise=in_noise[0],
            supports=protocols.__contains__,
            limits=dialler_limits,
        )
        self.listener = Connection(
            dialler=False,
            identity=LISTENER,
            keys=StaticKeys.from_random(bytes(range(64, 128))),
            now_ms=0,
            muxers=listener_muxers,
            muxers_in_noise=in_noise[1],
            supports=protocols.__contains__,
            limits=listener_limits,
        )

    def pump(self) -> None:
        """Carry bytes both ways until neither side has any."""
        silent = 0
        ways = [(self.dialler, self.listener), (self.listener, self.dialler)]
        while silent < 2:
            for source, target in ways:
                data = source.data_to_send()
                silent = 0 if data else silent + 1
                for piece in self._cut(data):
                    target.receive(piece, self.now_ms)
                    while target.budget.is_spent:
                        target.receive(b"", self.now_ms)


def events(connection: Connection, *, consume: bool = True) -> list[ConnectionEvent]:
    """What happened, with received bytes taken at once."""
    found = []
    while (event := connection.next_event()) is not None:
        found.append(event)
        if consume and isinstance(event, Received):
            connection.consumed(event.stream_id, len(event.data))
    return found


def data_of(found: list[ConnectionEvent], stream_id: int) -> bytes:
    return b"".join(e.data for e in found if isinstance(e, Received) and e.stream_id == stream_id)


def connected(**options: object) -> Pair:
    """A pair that agreed on everything but streams."""
    pair = Pair(**options)  # type: ignore[arg-type]
    pair.pump()
    for side in (pair.dialler, pair.listener):
        assert [type(event) for event in events(side)] == [Connected]
    return pair
