"""Sockets that listen already."""

from __future__ import annotations

import errno
import socket

import pytest

from waku.node.listening import already_bound, listening_socket


def test_a_socket_is_found_by_its_address() -> None:
    with listening_socket("127.0.0.1", 0) as one, listening_socket("127.0.0.1", 0) as other:
        port = one.getsockname()[1]
        assert already_bound([other, one], "127.0.0.1", port) is one
        assert already_bound([other], "127.0.0.1", port) is None
    assert already_bound([one], "127.0.0.1", port) is None  # it is closed


def test_a_client_waits_until_it_is_accepted() -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        with socket.create_connection(listener.getsockname()) as client:
            client.sendall(b"early")
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(5) == b"early"


def test_all_interfaces_of_both_families_side_by_side() -> None:
    with listening_socket("0.0.0.0", 0) as four:
        port = four.getsockname()[1]
        with listening_socket("::", port, v6_only=True) as six:
            assert six.getsockname()[1] == port


def test_a_port_that_is_taken() -> None:
    with listening_socket("127.0.0.1", 0) as first:
        with pytest.raises(OSError) as refused:
            listening_socket("127.0.0.1", first.getsockname()[1])
    assert refused.value.errno == errno.EADDRINUSE
