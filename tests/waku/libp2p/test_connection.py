"""Both sides of a connection, joined in memory."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waku.libp2p import (
    Connected,
    HandshakeFailed,
    LimitExceeded,
    Limits,
    PeerViolation,
    ProtocolNotSupported,
    Received,
    RemoteEnded,
    StreamAgreed,
    StreamReset,
    StreamWritable,
)
from waku.libp2p.mplex import Mplex
from waku.libp2p.yamux import INITIAL_WINDOW_BYTES, Yamux

from .pair import DIALLER, LISTENER, Pair, at_random, connected, data_of, events

YAMUX, MPLEX = (Yamux.protocol,), (Mplex.protocol,)
BOTH = pytest.mark.parametrize("muxers", [YAMUX, MPLEX], ids=["yamux", "mplex"])


@pytest.mark.parametrize("in_noise", [(True, True), (True, False), (False, True), (False, False)])
@BOTH
def test_both_sides_learn_who_the_other_is(
    muxers: tuple[str, ...], in_noise: tuple[bool, bool]
) -> None:
    """T4: muxers are agreed in noise if both offer a list, and by multistream otherwise."""
    pair = Pair(listener_muxers=muxers, in_noise=in_noise)
    pair.pump()
    (dialled,), (answered,) = events(pair.dialler), events(pair.listener)
    assert isinstance(dialled, Connected)
    assert isinstance(answered, Connected)
    assert dialled.remote.peer_id == LISTENER.peer_id
    assert answered.remote.peer_id == DIALLER.peer_id
    assert dialled.muxer == answered.muxer == muxers[0]


def test_the_dialler_prefers() -> None:
    pair = Pair(dialler_muxers=(*MPLEX, *YAMUX), listener_muxers=(*YAMUX, *MPLEX))
    pair.pump()
    assert [e.muxer for e in events(pair.listener) if isinstance(e, Connected)] == list(MPLEX)


def test_no_common_muxer_ends_the_connection() -> None:
    for in_noise in ((True, True), (False, False)):
        pair = Pair(dialler_muxers=YAMUX, listener_muxers=MPLEX, in_noise=in_noise)
        with pytest.raises(ProtocolNotSupported):
            pair.pump()


def test_another_peer_than_the_dialled_one_is_refused() -> None:
    """T13."""
    pair = Pair(expected=DIALLER.peer_id)
    with pytest.raises(
        HandshakeFailed, match=f"peer {DIALLER.peer_id}, but peer {LISTENER.peer_id}"
    ):
        pair.pump()


@given(seed=st.integers(0, 2**32), flip=st.integers(0, 200))
def test_a_changed_byte_of_the_handshake_never_connects(seed: int, flip: int) -> None:
    """Whatever an attacker changes on the way, neither side takes the other for connected, or
    nothing was changed for it."""
    pair = Pair()
    changed = []
    sides = [pair.dialler, pair.listener]
    with pytest.raises((PeerViolation, ProtocolNotSupported)):
        for turn in range(20):
            data = bytearray(sides[turn % 2].data_to_send())
            if turn == 1 and data:
                place = flip % len(data)
                data[place] ^= 1 << (seed % 8)
                changed.append(place)
            sides[1 - turn % 2].receive(bytes(data), 0)
        raise PeerViolation("nothing more comes")
    assert changed
    assert not [e for e in events(pair.dialler) if isinstance(e, Connected)]


@BOTH
@given(seed=st.integers(0, 2**32))
def test_any_cut_gives_the_same(muxers: tuple[str, ...], seed: int) -> None:
    """Streams of both sides at once, whatever pieces the sockets make of them."""
    random = Random(seed)
    pair = Pair(cut=at_random(random, 2_000), listener_muxers=muxers)
    pair.pump()
    events(pair.dialler), events(pair.listener)
    ours = {}
    for number in range(random.randint(1, 5)):
        opener = random.choice([pair.dialler, pair.listener])
        stream_id = opener.open_stream(["/echo/1"], 0)
        data = random.randbytes(random.choice([0, 1, 100, 70_000]))
        opener.send(stream_id, data)
        opener.end(stream_id)
        ours[number] = (opener, stream_id, data)
    pair.pump()
    got = {pair.dialler: events(pair.dialler), pair.listener: events(pair.listener)}
    for opener, other in ((pair.dialler, pair.listener), (pair.listener, pair.dialler)):
        sent = sorted(data for who, _, data in ours.values() if who is opener)
        agreed = [e for e in got[other] if isinstance(e, StreamAgreed) and e.by_peer]
        assert sorted(data_of(got[other], e.stream_id) for e in agreed) == sent
        for event in agreed:
            assert RemoteEnded(event.stream_id) in got[other]
            other.end(event.stream_id)
    pair.pump()
    assert pair.dialler.stream_count == pair.listener.stream_count == 0


@BOTH
def test_a_request_and_its_answer_take_one_round_trip(muxers: tuple[str, ...]) -> None:
    pair = connected(listener_muxers=muxers)
    stream_id = pair.dialler.open_stream(["/echo/1"], 0)
    pair.dialler.send(stream_id, b"question")
    pair.dialler.end(stream_id)
    pair.listener.receive(pair.dialler.data_to_send(), 0)
    agreed, received, ended = events(pair.listener)
    assert isinstance(agreed, StreamAgreed)
    assert agreed == StreamAgreed(agreed.stream_id, "/echo/1", by_peer=True)
    assert received == Received(agreed.stream_id, b"question")
    assert ended == RemoteEnded(agreed.stream_id)
    pair.listener.send(agreed.stream_id, b"answer")
    pair.listener.end(agreed.stream_id)
    pair.dialler.receive(pair.listener.data_to_send(), 0)
    assert events(pair.dialler) == [
        StreamAgreed(stream_id, "/echo/1", by_peer=False),
        Received(stream_id, b"answer"),
        RemoteEnded(stream_id),
    ]
    assert pair.dialler.stream_count == pair.listener.stream_count == 0


@pytest.mark.parametrize("size", [10, INITIAL_WINDOW_BYTES + 1])
@BOTH
def test_a_reset_drops_nothing_that_can_still_go_once_both_sides_have_ended(
    muxers: tuple[str, ...], size: int
) -> None:
    pair = connected(listener_muxers=muxers)
    stream_id = pair.dialler.open_stream(["/echo/1"], 0)
    pair.dialler.end(stream_id)
    pair.listener.receive(pair.dialler.data_to_send(), 0)
    theirs = events(pair.listener)[0].stream_id  # type: ignore[union-attr]
    pair.listener.send(theirs, bytes(size))
    pair.listener.end(theirs)
    is_stuck = pair.listener.waiting_bytes(theirs) > 0
    assert is_stuck == (muxers == YAMUX and size > INITIAL_WINDOW_BYTES)
    pair.listener.reset(theirs)
    pair.pump()
    found = events(pair.dialler)
    assert pair.listener.stream_count == pair.dialler.stream_count == 0
    if is_stuck:
        assert isinstance(found[-1], StreamReset)
    else:
        assert data_of(found, stream_id) == bytes(size)
        assert found[-1] == RemoteEnded(stream_id)


@BOTH
def test_a_refused_protocol_ends_its_stream_alone(muxers: tuple[str, ...]) -> None:
    """T3: data sent ahead for it are read as the next wish."""
    pair = connected(listener_muxers=muxers)
    refused = pair.dialler.open_stream(["/nope/1"], 0)
    pair.dialler.send(refused, b"x" * 300)
    pair.pump()
    assert [type(e) for e in events(pair.dialler)] == [StreamReset]
    stream_id = pair.dialler.open_stream(["/nope/1", "/echo/1"], 0)
    pair.pump()
    assert StreamAgreed(stream_id, "/echo/1", by_peer=False) in events(pair.dialler)


def test_yamux_holds_back_what_the_peer_does_not_read() -> None:
    """T5: more than a window, both for one message and for one that nobody reads."""
    pair = connected(listener_muxers=YAMUX)
    stream_id = pair.dialler.open_stream(["/echo/1"], 0)
    pair.dialler.send(stream_id, b"x" * (2 * INITIAL_WINDOW_BYTES))
    pair.dialler.end(stream_id)
    pair.pump()
    agreed, *received = events(pair.listener, consume=False)
    assert isinstance(agreed, StreamAgreed)
    got = len(data_of(received, agreed.stream_id))
    assert got <= INITIAL_WINDOW_BYTES
    assert pair.dialler.waiting_bytes(stream_id) > INITIAL_WINDOW_BYTES
    assert RemoteEnded(agreed.stream_id) not in received
    pair.listener.consumed(agreed.stream_id, got)
    for _ in range(5):
        pair.pump()
        received += events(pair.listener)
    assert len(data_of(received, agreed.stream_id)) == 2 * INITIAL_WINDOW_BYTES
    assert StreamWritable(stream_id) in events(pair.dialler)
    assert RemoteEnded(agreed.stream_id) in received


def test_an_unread_mplex_stream_is_reset_and_the_connection_lives() -> None:
    """T6: there is no flow control, so the buffer has a bound."""
    pair = connected(listener_muxers=MPLEX, listener_limits=Limits(stream_buffer_bytes=100_000))
    stream_id = pair.dialler.open_stream(["/echo/1"], 0)
    pair.dialler.send(stream_id, b"x" * 200_000)
    pair.pump()
    assert any(
        isinstance(e, StreamReset) and "stream_buffer_bytes" in e.reason
        for e in events(pair.listener, consume=False)
    )
    assert any(isinstance(e, StreamReset) for e in events(pair.dialler))
    again = pair.dialler.open_stream(["/echo/1"], 0)
    pair.pump()
    assert StreamAgreed(again, "/echo/1", by_peer=False) in events(pair.dialler)


@BOTH
def test_buffers_of_all_streams_together_are_bounded(muxers: tuple[str, ...]) -> None:
    pair = connected(
        listener_muxers=muxers, listener_limits=Limits(connection_buffer_bytes=300_000)
    )
    for _ in range(4):
        stream_id = pair.dialler.open_stream(["/echo/1"], 0)
        pair.dialler.send(stream_id, b"x" * 100_000)
    with pytest.raises(LimitExceeded, match="connection_buffer_bytes"):
        pair.pump()


@BOTH
def test_streams_beyond_the_bound_are_reset(muxers: tuple[str, ...]) -> None:
    pair = connected(listener_muxers=muxers, listener_limits=Limits(streams_by_peer=3))
    opened = [pair.dialler.open_stream(["/echo/1"], 0) for _ in range(5)]
    pair.pump()
    found = events(pair.dialler)
    assert [e.stream_id for e in found if isinstance(e, StreamReset)] == opened[3:]
    assert [e.stream_id for e in found if isinstance(e, StreamAgreed)] == opened[:3]


@BOTH
def test_abandoned_negotiations_are_reset(muxers: tuple[str, ...]) -> None:
    """T10: js-waku opens streams ahead, so they may idle; not for ever, and not too many."""
    limits = Limits(negotiation_ms=1_000, negotiating_streams=2)
    pair = connected(listener_muxers=muxers, listener_limits=limits, protocols=())
    for _ in range(3):
        pair.dialler.open_stream(["/slow/1"], 0)
    pair.dialler.receive(b"", 0)
    pair.listener.receive(pair.dialler.data_to_send(), 0)
    assert pair.listener.stream_count == 2
    assert pair.listener.next_deadline_ms == 1_000
    pair.listener.on_deadline(999)
    assert pair.listener.stream_count == 2
    pair.listener.on_deadline(1_000)
    assert pair.listener.stream_count == 0
    pair.pump()
    assert [type(e) for e in events(pair.dialler)] == [StreamReset] * 3
    assert events(pair.listener) == []


def test_a_silent_peer_is_given_up() -> None:
    pair = Pair(dialler_limits=Limits(handshake_ms=500))
    assert pair.dialler.next_deadline_ms == 500
    pair.dialler.on_deadline(499)
    with pytest.raises(HandshakeFailed, match="500 ms"):
        pair.dialler.on_deadline(500)
    pair = connected(dialler_limits=Limits(idle_ms=700))
    with pytest.raises(PeerViolation, match="700 ms"):
        pair.dialler.on_deadline(pair.dialler.next_deadline_ms)


@BOTH
def test_what_was_reset_is_forgotten(muxers: tuple[str, ...]) -> None:
    pair = connected(listener_muxers=muxers)
    stream_id = pair.dialler.open_stream(["/echo/1"], 0)
    pair.dialler.send(stream_id, b"half")
    pair.pump()
    pair.dialler.reset(stream_id)
    pair.dialler.send(stream_id, b"more")
    pair.pump()
    assert isinstance(events(pair.listener)[-1], StreamReset)
    assert pair.dialler.stream_count == pair.listener.stream_count == 0
