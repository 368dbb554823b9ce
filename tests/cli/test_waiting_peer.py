"""A peer that starts before its node waits for it, unless it is told not to."""

from __future__ import annotations

from contextlib import closing

from reliable_channel.cli.exit_codes import ExitCode

from .processes import Peer

NOBODY = ("--node", "http://:s3cr3t@127.0.0.1:9", "--sender-id", "alice")


def test_a_peer_is_ready_before_its_node_and_tells_that_it_is_away() -> None:
    with closing(Peer(*NOBODY)) as peer:
        peer.event("ready")
        peer.send("early", ref=1)
        peer.event("accepted", ref=1)
        assert "127.0.0.1:9" in peer.event("node_health_changed")["address"]
        peer.event("transport_degraded", component="receive")
        peer.command("stop")
        peer.event("stopped")
        assert "s3cr3t" not in str(peer.told)


def test_a_peer_that_is_not_to_wait_ends_with_an_error() -> None:
    with closing(Peer(*NOBODY, "--no-wait-for-node")) as peer:
        peer.finish()
        assert peer.told == []
        assert peer.process.returncode == ExitCode.NO_NODE
