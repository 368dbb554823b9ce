"""What a peer may send: counted frame by frame, in turns, with the time given."""

from collections.abc import Callable

import pytest

from tests import inside
from waku.libp2p import Connected, LimitExceeded, Limits
from waku.libp2p.budget import FRAME, NONSENSE, TURN, Budget
from waku.libp2p.mplex import Mplex
from waku.libp2p.multistream import MULTISTREAM, line
from waku.libp2p.muxer import LATE_BYTES
from waku.libp2p.yamux import INITIAL_WINDOW_BYTES as WINDOW
from waku.libp2p.yamux import Yamux

from .pair import connected, events
from .test_muxers import ACK, DATA, OPEN, PING, RST, SYN, UPDATE, m, y

LIMITS = Limits(frames_per_s=500)
"""A burst of 1,000 frames, of 10 that are nonsense."""

Made = Callable[[], Yamux | Mplex]


def yamux() -> Yamux:
    return Yamux(dialler=False, limits=LIMITS)


def mplex() -> Mplex:
    return Mplex(dialler=False, limits=LIMITS)


def taken(muxer: Yamux | Mplex, frame: Callable[[int], bytes]) -> int:
    """Frames until the connection would end; answers are read."""
    for number in range(10_000):
        try:
            muxer.receive(frame(number))
        except LimitExceeded as error:
            assert error.limit == "frames_per_s" and "`frames_per_s` is 500" in str(error)
            return number
        muxer.data_to_send()
    raise AssertionError("it never ends")


@pytest.mark.parametrize(
    ("made", "frame", "least", "most"),
    [
        (mplex, lambda _: bytes([42, 0]), 5, 10),
        (mplex, lambda n: m(n, 0) + m(n, 6), 5, 10),
        (mplex, lambda n: m(n, 0), 50, 100),
        (mplex, lambda n: m(0, 2, b"x") if n else m(0, 0), 900, 1_000),
        (mplex, lambda n: m(0, 2) if n else m(0, 0), 5, 10),
        (yamux, lambda _: y(PING, ACK, 0, 7), 5, 10),
        (yamux, lambda _: y(PING, SYN, 0, 7), 10, 20),
        (yamux, lambda _: y(UPDATE, 0, 5, 9), 5, 10),
        (yamux, lambda n: y(UPDATE, 0, 1) if n else OPEN, 5, 10),
        (yamux, lambda n: y(UPDATE, SYN, 2 * n + 1) + y(UPDATE, RST, 2 * n + 1), 5, 10),
        (yamux, lambda _: y(3, 0, 0), 5, 10),
    ],
)
def test_nonsense_is_dear_and_useful_frames_are_cheap(
    made: Made, frame: Callable[[int], bytes], least: int, most: int
) -> None:
    assert least <= taken(made(), frame) <= most


def test_late_frames_of_a_stream_that_is_gone_are_normal() -> None:
    """T5: the peer has not heard of the reset yet."""
    muxer = mplex()
    muxer.receive(m(0, 0))
    muxer.reset(-1)
    assert taken(muxer, lambda _: m(0, 2, b"late")) >= LATE_BYTES


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("is_yamux", [True, False], ids=["yamux", "mplex"])
def test_late_frames_are_cheap_up_to_the_window_and_dear_beyond(
    is_yamux: bool, refused: bool
) -> None:
    limits = Limits(frames_per_s=500, stream_buffer_bytes=WINDOW, streams_by_peer=1)
    muxer = (Yamux if is_yamux else Mplex)(dialler=False, limits=limits)
    muxer.receive(OPEN if is_yamux else m(0, 0))
    if refused:
        muxer.receive(y(UPDATE, SYN, 3) if is_yamux else m(1, 0))
    else:
        muxer.reset(1 if is_yamux else -1)

    def late(data: bytes) -> float:
        """The price of a frame."""
        before = muxer.budget.left
        frame = y(DATA, 0, 1 + 2 * refused, data=data) if is_yamux else m(refused, 2, data)
        muxer.receive(frame)
        return before - muxer.budget.left

    assert {late(bytes(1_024)) for _ in range(WINDOW // 1_024)} == {FRAME}
    assert late(bytes(LATE_BYTES)) == FRAME
    assert late(b"x") == FRAME + NONSENSE


@pytest.mark.parametrize("is_yamux", [True, False], ids=["yamux", "mplex"])
def test_a_peer_that_reset_a_stream_has_no_window_left_on_it(is_yamux: bool) -> None:
    muxer = yamux() if is_yamux else mplex()
    muxer.receive(OPEN + y(UPDATE, RST, 1) if is_yamux else m(0, 0) + m(0, 6))
    data = bytes(LATE_BYTES + 1)
    assert taken(muxer, lambda _: y(DATA, 0, 1, data=data) if is_yamux else m(0, 2, data)) < 10


def test_time_fills_the_budget_again_up_to_the_burst() -> None:
    budget = Budget(500)
    budget.charge(1_000, "frames")
    with pytest.raises(LimitExceeded, match="the last: frames"):
        budget.charge(1, "frames")
    budget.begin_turn(1_000)
    budget.charge(499, "frames")
    budget.begin_turn(3_600_000)
    budget.charge(1_000, "frames")
    with pytest.raises(LimitExceeded):
        budget.charge(1, "frames")


@pytest.mark.parametrize("muxer", ["/yamux/1.0.0", "/mplex/6.7.0"])
def test_a_turn_has_some_hundred_frames_and_the_next_goes_on(muxer: str) -> None:
    pair = connected(listener_muxers=(muxer,), dialler_muxers=(muxer,))
    stream_id = pair.dialler.open_stream(["/echo/1"], 0)
    pair.pump()
    (agreed,) = events(pair.listener)
    for _ in range(1_000):  # each in a frame, and in a message of noise
        pair.dialler.send(stream_id, b"x")
        pair.dialler._out += pair.dialler.data_to_send()  # noqa: SLF001
    data, turns, got = pair.dialler.data_to_send(), 0, 0
    while data or pair.listener.budget.is_spent:
        pair.listener.receive(data, 0)
        data, found = b"", events(pair.listener)
        assert len(found) <= TURN
        turns, got = turns + 1, got + len(found)
    assert got == 1_000 and turns >= 1_000 // TURN
    assert not isinstance(agreed, Connected)


def test_small_messages_of_noise_cost_as_frames_do() -> None:
    pair = connected(listener_limits=LIMITS)
    cipher = inside.ciphers(pair.dialler.noise)[0]
    sealed = b"".join(b"\0\x10" + cipher.encrypt(b"") for _ in range(1_100))
    turns = 0
    with pytest.raises(LimitExceeded, match="messages of noise"):
        while True:
            pair.listener.receive(b"" if turns else sealed, 0)
            assert pair.listener.budget.is_spent
            turns += 1
    assert turns == 1_000 // TURN


@pytest.mark.parametrize("muxer", ["/yamux/1.0.0", "/mplex/6.7.0"])
def test_what_waits_to_be_sent_goes_with_its_stream(muxer: str) -> None:
    """A peer that reads nothing opens streams, asks, and resets them, again and again."""
    pair = connected(listener_muxers=(muxer,), dialler_muxers=(muxer,))
    listener = pair.listener
    for _ in range(1_000):
        stream_id = pair.dialler.open_stream(["/echo/1"], 0)
        listener.receive(pair.dialler.data_to_send(), 0)
        agreed = events(listener)[0]
        listener.send(agreed.stream_id, bytes(100_000))  # type: ignore[union-attr]
        pair.dialler.reset(stream_id)
        listener.receive(pair.dialler.data_to_send(), 0)
        events(listener)
    assert listener.stream_count == 0
    assert len(listener.data_to_send()) < 50_000


@pytest.mark.parametrize("muxer", ["/yamux/1.0.0", "/mplex/6.7.0"])
def test_an_own_stream_that_is_reset_before_it_left_is_never_mentioned(muxer: str) -> None:
    pair = connected(listener_muxers=(muxer,), dialler_muxers=(muxer,))
    stream_id = pair.dialler.open_stream(["/echo/1"], 0)
    pair.dialler.send(stream_id, b"hello")
    pair.dialler.reset(stream_id)
    assert pair.dialler.data_to_send() == b""


@pytest.mark.parametrize("muxer", ["/yamux/1.0.0", "/mplex/6.7.0"])
def test_honest_rates_leave_most_of_the_budget(muxer: str) -> None:
    """500 light pushes a second, each on a stream, answered and now and then reset: for 5 s."""
    pair = connected(listener_muxers=(muxer,), dialler_muxers=(muxer,))
    least = pair.listener.budget.left
    for number in range(2_500):
        pair.now_ms = 2 * number
        stream_id = pair.dialler.open_stream(["/echo/1"], pair.now_ms)
        pair.dialler.send(stream_id, bytes(200))
        pair.dialler.end(stream_id)
        pair.pump()
        theirs = events(pair.listener)[0].stream_id  # type: ignore[union-attr]
        pair.listener.send(theirs, b"ok")
        if number % 10:
            pair.listener.end(theirs)
            pair.pump()
        pair.dialler.reset(stream_id)
        pair.pump()
        events(pair.dialler)
        events(pair.listener)
        least = min(least, pair.listener.budget.left)
    assert pair.listener.stream_count == 0
    assert least > 0.99 * 2 * Limits().frames_per_s


def test_a_negotiation_costs_no_more_than_its_frames() -> None:
    muxer = mplex()
    muxer.receive(m(0, 0) + m(0, 2, line(MULTISTREAM)) + m(0, 2, line("/echo/1")))
    assert muxer.budget.left == 1_000 - 13
