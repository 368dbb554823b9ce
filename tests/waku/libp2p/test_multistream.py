"""Negotiations that go wrong; those that go well, the vectors show."""

import pytest

from waku.libp2p import LimitExceeded, Limits, PeerViolation, ProtocolNotSupported
from waku.libp2p.multistream import MULTISTREAM, Dialler, Listener, line

LIMITS = Limits(multistream_lines=3)
GREETING = line(MULTISTREAM)


def test_the_listener_says_na_until_something_fits() -> None:
    listener = Listener("/b".__eq__, LIMITS)
    listener.receive(GREETING + line("/a") + line("/b") + b"payload")
    assert listener.data_to_send() == GREETING + line("na") + line("/b")
    assert listener.protocol == "/b"
    assert listener.rest == b"payload"


def test_endless_wishes_end() -> None:
    listener = Listener("/b".__eq__, LIMITS)
    with pytest.raises(LimitExceeded, match="multistream_lines"):
        listener.receive(GREETING + line("/a") * 3)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n" * 10,
        line("/other/1.0.0"),
        GREETING + b"\x06/noise",
        GREETING + b"\x00",
        GREETING + b"\xff" * 10,
        GREETING + b"\x80\x80@" + b"x" * 20,
    ],
)
def test_anything_else_is_a_violation(data: bytes) -> None:
    for side in (Listener("/noise".__eq__, LIMITS), Dialler(["/noise"], LIMITS)):
        with pytest.raises(PeerViolation):
            side.receive(data)


def test_a_port_for_http_is_named() -> None:
    """`H` is the length of a line, which the answer of a web server does not end."""
    answer = (
        b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n" + b"\r\n" * 9
    )
    with pytest.raises(PeerViolation, match=r"does not greet with /multistream/1.0.0: .*for HTTP"):
        Dialler(["/noise"], LIMITS).receive(answer)


def test_the_dialler_asks_for_one_after_the_other() -> None:
    dialler = Dialler(["/a", "/b"], LIMITS)
    assert dialler.data_to_send() == GREETING + line("/a")
    dialler.receive(GREETING + line("na"))
    assert dialler.data_to_send() == line("/b")
    dialler.receive(line("/b") + b"more")
    assert (dialler.protocol, dialler.rest) == ("/b", b"more")


def test_the_dialler_names_what_it_asked_for() -> None:
    dialler = Dialler(["/a", "/b"], LIMITS)
    with pytest.raises(ProtocolNotSupported, match="none of /a, /b"):
        dialler.receive(GREETING + line("na") * 2)
    with pytest.raises(PeerViolation, match="asked for protocol '/a', but the peer answered '/c'"):
        Dialler(["/a"], LIMITS).receive(GREETING + line("/c"))
