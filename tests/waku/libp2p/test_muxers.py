"""What a hostile peer does to a muxer, frame by frame."""

import pytest

from tests import inside
from waku.libp2p import LimitExceeded, Limits, PeerViolation
from waku.libp2p.mplex import Mplex
from waku.libp2p.muxer import (
    PIECE_BYTES,
    GoneAway,
    PeerNumbers,
    Received,
    RemoteEnded,
    StreamOpened,
    StreamReset,
)
from waku.libp2p.varint import encode, prefixed
from waku.libp2p.yamux import INITIAL_WINDOW_BYTES, Yamux

LIMITS = Limits(frame_bytes=300_000, streams_by_peer=4, control_bytes=240)
DATA, UPDATE, PING, GO_AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8


def yamux() -> Yamux:
    return Yamux(dialler=False, limits=LIMITS)


def mplex() -> Mplex:
    return Mplex(dialler=False, limits=LIMITS)


def y(kind: int, flags: int, stream_id: int, length: int = 0, data: bytes = b"") -> bytes:
    header = (kind, flags, stream_id, length or len(data))
    sizes = (1, 2, 4, 4)
    return b"\0" + b"".join(n.to_bytes(s, "big") for n, s in zip(header, sizes, strict=True)) + data


def m(number: int, flag: int, data: bytes = b"") -> bytes:
    return encode(number * 8 + flag) + prefixed(data)


OPEN = y(UPDATE, SYN, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x01" + OPEN[1:], "version 1"),
        (y(7, 0, 1), "unknown type 7"),
        (y(DATA, SYN, 2), "a number that belongs to this side"),
        (y(DATA, SYN, 0), "a number that belongs to this side"),
        (y(DATA, 0, 0), "has the number of the session"),
        (OPEN + OPEN, "stream 1 twice"),
        (y(UPDATE, SYN, 3) + OPEN + OPEN, "stream 1 twice"),
        (y(UPDATE, SYN, 1001) + OPEN, "stream 1 twice"),
        (OPEN + y(DATA, FIN, 1) + y(DATA, 0, 1, data=b"x"), "had ended"),
        (OPEN + y(DATA, 0, 1, data=bytes(INITIAL_WINDOW_BYTES + 1)), "whose window is"),
    ],
)
def test_yamux_names_the_rule_that_was_broken(data: bytes, reason: str) -> None:
    with pytest.raises(PeerViolation, match=reason):
        yamux().receive(data)


def test_a_giant_frame_is_refused_by_its_header() -> None:
    with pytest.raises(LimitExceeded, match="frame_bytes"):
        yamux().receive(y(DATA, SYN, 1, 2**32 - 1))
    with pytest.raises(LimitExceeded, match="frame_bytes"):
        mplex().receive(encode(0) + encode(300_001))


def test_answers_that_nobody_reads_are_bounded() -> None:
    muxer = yamux()
    pings = y(PING, SYN, 0, 7)
    muxer.receive(pings * 20)
    assert muxer.data_to_send() == y(PING, ACK, 0, 7) * 20
    with pytest.raises(LimitExceeded, match="control_bytes"):
        muxer.receive(pings * 21)


def test_yamux_ignores_what_belongs_to_streams_that_are_gone() -> None:
    """T5: normal after a reset."""
    muxer = yamux()
    muxer.receive(OPEN + y(UPDATE, RST, 1) + y(DATA, 0, 1, data=b"late") + y(UPDATE, 0, 1, 9))
    events = [muxer.next_event(), muxer.next_event(), muxer.next_event()]
    assert events == [StreamOpened(1), StreamReset(1, "the peer reset it"), None]


def test_yamux_gives_credit_as_bytes_are_consumed() -> None:
    """T5: before a message is whole, or a message above the window would never arrive."""
    muxer = yamux()
    muxer.receive(OPEN)
    muxer.data_to_send()
    piece = INITIAL_WINDOW_BYTES // 4
    for number in range(16):
        muxer.receive(y(DATA, 0, 1, data=bytes(piece)))
        muxer.consumed(1, piece)
        credit = muxer.data_to_send()
        assert credit == (y(UPDATE, 0, 1, 2 * piece) if number % 2 else b"")


def test_yamux_does_not_count_credit_beyond_its_field() -> None:
    muxer = yamux()
    muxer.receive(OPEN + y(UPDATE, 0, 1, 2**32 - 1) * 3)
    muxer.data_to_send()
    muxer.send(1, b"x" * 1_000_000)
    assert muxer.waiting_bytes(1) == 0


@pytest.mark.parametrize("made", [Yamux, Mplex])
def test_data_leave_in_frames_that_no_peer_refuses(made: type[Yamux | Mplex]) -> None:
    """A peer may give credit for more than it takes in one frame."""
    muxer, peer = made(dialler=True, limits=Limits()), made(dialler=False, limits=Limits())
    stream_id = muxer.open_stream()
    peer.receive(muxer.data_to_send())
    (theirs,) = peer._streams.values()  # noqa: SLF001
    theirs.receive_window = 4_000_000
    if made is Yamux:
        muxer.receive(y(UPDATE, 0, stream_id, 4_000_000))
    muxer.send(stream_id, b"x" * 3_000_000)
    peer.receive(muxer.data_to_send())
    pieces = [event for event in iter(peer.next_event, None) if isinstance(event, Received)]
    assert b"".join(piece.data for piece in pieces) == b"x" * 3_000_000
    assert max(len(piece.data) for piece in pieces) == PIECE_BYTES


def test_yamux_hears_that_the_peer_goes_away_and_says_so() -> None:
    muxer = yamux()
    muxer.receive(y(GO_AWAY, 0, 0, 2))
    assert muxer.next_event() == GoneAway(2)
    muxer.go_away()
    assert muxer.data_to_send() == y(GO_AWAY, 0, 0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (encode(7) + b"\0", "flag 7"),
        (b"\x80\x00\x00", "header"),
        (b"\xff" * 12, "header"),
        (m(0, 0) + m(0, 0), "stream 0 twice"),
        (m(3, 0) + m(1, 0) + m(1, 0), "stream 1 twice"),
        (m(1000, 0) + m(1, 0), "stream 1 twice"),
        (m(0, 0) + m(0, 4) + m(0, 2, b"x"), "had ended"),
    ],
)
def test_mplex_names_the_rule_that_was_broken(data: bytes, reason: str) -> None:
    with pytest.raises(PeerViolation, match=reason):
        mplex().receive(data)


def test_mplex_keeps_apart_what_both_sides_call_stream_0() -> None:
    """T6."""
    muxer = mplex()
    own = muxer.open_stream()
    muxer.receive(m(0, 0, b"0") + m(0, 2, b"theirs") + m(0, 1, b"ours") + m(0, 3) + m(0, 6))
    events = [muxer.next_event() for _ in range(6)]
    assert events == [
        StreamOpened(-1),
        Received(-1, b"theirs"),
        Received(own, b"ours"),
        RemoteEnded(own),
        StreamReset(-1, "the peer reset it"),
        None,
    ]
    muxer.receive(m(9, 2, b"late"))
    assert muxer.next_event() is None


@pytest.mark.parametrize("muxer", [yamux(), mplex()], ids=["yamux", "mplex"])
def test_nothing_is_sent_on_streams_that_are_gone(muxer: Yamux | Mplex) -> None:
    muxer.send(99, b"x")
    muxer.end(99)
    muxer.reset(99)
    muxer.consumed(99, 5)
    assert muxer.data_to_send() == b""
    assert muxer.waiting_bytes(99) == 0


@pytest.mark.parametrize(("first", "step"), [(0, 1), (1, 2), (2, 2)])
def test_opening_frames_may_overtake_each_other(first: int, step: int) -> None:
    """T21: go-libp2p's do, where several streams are opened at once."""
    numbers = PeerNumbers(first, step)
    order = [0, 3, 1, 2, 7, 6, 5, 4, 60, 20]
    for number in order:
        numbers.take(first + step * number)
    for number in order:
        with pytest.raises(PeerViolation, match=f"opened stream {first + step * number} twice"):
            numbers.take(first + step * number)
    numbers.take(first + step * 10**9)
    assert inside.sizes(numbers)["_late"] == 64
