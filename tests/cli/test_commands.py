"""The command line as processes: a node, peers, and what a person types."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from reliable_channel import ChannelOptions
from reliable_channel.cli.channel_flags import NO_FLAGS

from . import forked
from .forked import Process
from .in_process import run
from .processes import TIMEOUT_S, Node, Terminal, payload, peers

QUICK = [
    *("--sync-min-interval-ms", "400"),
    *("--retry-interval-ms", "800"),
    *("--possibly-acknowledged-retry-interval-ms", "1600"),
    *("--retrieve-frequency-ms", "300"),
    *("--sweep-in-buf-interval-ms", "100"),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Node() as node:
        yield node.address


def flags(address: str, channel: str, sender: str, *more: str) -> list[str]:
    return ["--node", address, "--channel-id", channel, "--sender-id", sender, *QUICK, *more]


def test_peers_talk_and_agree(address: str) -> None:
    with peers(
        flags(address, "talk", "alice"),
        flags(address, "talk", "bob", "--drop-incoming", "0.5", "--seed", "7"),
    ) as (alice, bob):
        assert alice.event("ready")["sender_id"] == "alice"
        bob.event("ready")
        for number in range(20):
            alice.send(f"m{number}", ref=number)
        accepted = alice.event("accepted", ref=19)
        bob.event("message_received", payload=payload("m19"))
        alice.event("message_acknowledged", message_id=accepted["message_id"])
        received = [t["payload"] for t in bob.told if t["event"] == "message_received"]
        assert received == [payload(f"m{number}") for number in range(20)]
        assert bob.ask("statistics", 1)["dropped_incoming"] > 0
        ours, theirs = alice.ask("log", 2), bob.ask("log", 2)
        assert ours["digest"] == theirs["digest"]
        assert ours["entries"] == theirs["entries"]
        for peer in (alice, bob):
            peer.command("stop")
            peer.finish()
            assert peer.told[0]["event"] == "ready"
            assert peer.told[-1]["event"] == "stopped"
            assert peer.process.returncode == 0


def test_a_bad_line_is_answered_and_forgotten(address: str) -> None:
    with peers(flags(address, "bad", "alice")) as (alice,):
        alice.event("ready")
        alice.write("not json")
        alice.write("[1]")
        alice.write("[" * 100_000)
        alice.write(json.dumps({"op": "dance", "ref": 1}))
        alice.write(json.dumps({"op": "send", "ref": 2}))
        alice.write(json.dumps({"op": "send", "ref": 3, "payload": "%%"}))
        alice.write(json.dumps({"op": "send", "ref": 4, "payload": ""}))
        alice.write(json.dumps({"op": "send", "ref": 5, "payload": payload("x" * 150_000)}))
        alice.send("fine", ref=6)
        alice.event("accepted", ref=6)
        errors = {t["ref"]: t["reason"] for t in alice.told if t["event"] == "error"}
        assert "unknown op 'dance'" in errors[1]
        assert "'payload'" in errors[2]
        assert "base64" in errors[3]
        assert "content" in errors[4]
        assert "max_message_bytes" in errors[5]
        assert sum(t["event"] == "error" for t in alice.told) == 8
        assert any("nested" in t.get("reason", "") for t in alice.told)
        assert any("a JSON object (got list)" in t.get("reason", "") for t in alice.told)


def test_a_node_that_is_killed_and_comes_back_loses_nothing(tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    with Node("--store", store) as first:
        lists = [flags(first.address, "restart", name) for name in ("alice", "bob")]
        with peers(*lists) as (alice, bob):
            alice.event("ready"), bob.event("ready")
            alice.send("before")
            bob.event("message_received", payload=payload("before"))
            first.process.kill()
            alice.send("while away")
            alice.event("transport_degraded", component="send")
            with Node("--store", store, port=first.port):
                bob.event("message_received", payload=payload("while away"))
                alice.event("transport_recovered", component="send")
                assert alice.ask("log", 1)["digest"] == bob.ask("log", 1)["digest"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_peer_that_waits_for_a_line(address: str, number: signal.Signals) -> None:
    with peers(flags(address, "signal", "alice")) as (alice,):
        alice.event("ready")
        alice.process.send_signal(number)
        alice.finish()
        assert alice.told[-1]["event"] == "stopped"
        assert alice.process.returncode == 0


def test_what_could_not_be_sent_is_told_before_the_end() -> None:
    with Node() as node, peers(flags(node.address, "down", "alice")) as (alice,):
        alice.event("ready")
        node.process.kill()
        alice.send("into the void", ref=1)
        message_id = alice.event("accepted", ref=1)["message_id"]
        alice.command("stop")
        alice.finish()
        failed = alice.event("send_failed", message_id=message_id)
        assert "closed" in failed["reason"]
        assert alice.told[-1]["event"] == "stopped"


def test_an_interrupted_chat_ends_at_once_and_leaves_the_terminal_as_it_was(address: str) -> None:
    with Terminal("chat", *flags(address, "typing", "alice")) as terminal:
        terminal.until("Ctrl-D leaves")
        terminal.until("> ")
        terminal.type("half a li")
        terminal.until("half a li")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(TIMEOUT_S) == 130
        assert terminal.echoes()


def test_every_option_of_a_channel_is_a_flag_of_peer() -> None:
    text = run("peer", "--help-all").stdout
    for field in fields(ChannelOptions):
        if field.name in NO_FLAGS:
            continue
        assert "--" + field.name.replace("_", "-") in text


def test_a_wrong_option_says_which_and_what_is_allowed(address: str) -> None:
    result = run("peer", *flags(address, "x", "alice", "--causal-history-size", "5000"))
    assert result.returncode == 2
    assert "`causal_history_size` must be between 0 and 1000" in result.stderr
    assert "(got 5000)" in " ".join(result.stderr.split())


def test_an_error_is_shown_as_it_is_however_it_looks(address: str) -> None:
    result = run("peer", *flags(address, "x", "alice"), "--content-topic", "/a/b/c/[/red]")
    assert result.returncode == 2
    assert "[/red]" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_message_store_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    result = run("node", "--port", "0", "--store", str(tmp_path / "missing" / "store.sqlite"))
    assert result.returncode == 4
    assert "missing" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_port_outside_the_range_is_refused() -> None:
    result = run("node", "--port", "99999")
    assert result.returncode == 2
    assert "65535" in result.stderr


def test_listen_tells_the_time_of_day(address: str) -> None:
    began_ms = time.time_ns() // 1_000_000
    assert run("send", "hello", *flags(address, "dated", "alice")).returncode == 0
    result = run("listen", "--json", "--count", "1", *flags(address, "dated", "bob"))
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(began_ms <= line["at_ms"] <= time.time_ns() // 1_000_000 for line in told)


def test_send_listen_and_journal(address: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    command = ["listen", *flags(address, "shell", "bob"), "--count", "1"]
    with Process(*command, stdout=subprocess.PIPE) as listener:
        alice = flags(address, "shell", "alice", "--journal", str(journal))
        sent = run("send", "hello", *alice)
        assert sent.returncode == 0, sent.stderr
        assert sent.stdout.strip()
        assert listener.stdout is not None
        heard = listener.stdout.read()
    assert heard == "alice: hello\n"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert lines[0]["event"] == "journal_opened"
    assert {"sending_message", "wire_out", "message_sent"} <= {line["event"] for line in lines}


def test_a_taken_port_is_named(address: str) -> None:
    port = address.rsplit(":", 1)[1]
    result = run("node", "--port", port)
    assert result.returncode == 4
    assert port in result.stderr


def test_a_chat_that_is_taken_up_again_shows_what_was_said(address: str, tmp_path: Path) -> None:
    state = ["--state", f"sqlite:///{tmp_path}/{{channel_id}}/{{sender_id}}.db"]
    command = ["chat", *flags(address, "again", "alice"), *state]
    forked.run(*command, input="before I left\n", check=True)
    again = forked.run(*command, check=True)
    assert "alice before I left" in again.stdout
    assert (tmp_path / "again" / "alice.db").exists()


def test_a_person_may_say_something_while_chatting(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RELIABLE_CHANNEL_STATE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    who = flags(address, "both", "alice")
    with Terminal("chat", *who) as terminal:
        terminal.until("Ctrl-D leaves")
        said = run("send", *who, "from the shell")
        assert said.returncode == 0
        assert "keeps none" in said.stderr
        refused = run("send", *who, "--state", f"sqlite:///{_state_in(tmp_path)}", "refused")
        assert refused.returncode == 4
        assert "one owner at a time" in refused.stderr
        assert "Traceback" not in refused.stderr


def _state_in(directory: Path) -> Path:
    (path,) = directory.rglob("*.db")
    return path


def test_a_node_that_listens_for_libp2p_peers(tmp_path: Path) -> None:
    key = tmp_path / "node.key"
    listen = ("--listen", "/ip4/127.0.0.1/tcp/0/ws", "--listen", "/ip4/127.0.0.1/tcp/0")
    addresses = []
    for _ in range(2):
        with Node(*listen, "--identity", str(key)) as node:
            addresses.append(node.libp2p_addresses)
            if len(addresses) == 1:
                second = run("node", "--port", "0", *listen, "--identity", str(key))
                assert second.returncode == 4
                assert "another node uses the identity" in second.stderr
            lists = [flags(one, "libp2p", name) for one, name in zip(
                node.libp2p_addresses, ("alice", "bob"), strict=True)]  # fmt: skip
            with peers(*lists) as (alice, bob):
                alice.event("ready"), bob.event("ready")
                alice.send("hello")
                bob.event("message_received", payload=payload("hello"))
    ids = {address.rpartition("/")[2] for both in addresses for address in both}
    assert len(ids) == 1
    assert key.stat().st_mode & 0o777 == 0o600


WITHOUT_LIBP2P = """
import sys
sys.modules.update(dict.fromkeys(("cryptography", "websockets", "dns")))
sys.argv = ["reliable-channel", "node", "--port", "0", "--listen", "/ip4/127.0.0.1/tcp/0"]
from reliable_channel.cli import run
run()
"""


def test_send_listen_and_chat_take_the_address_of_a_service_peer(tmp_path: Path) -> None:
    with Node("--listen", "/ip4/127.0.0.1/tcp/0", "--identity", str(tmp_path / "key")) as node:
        (one,) = node.libp2p_addresses
        sent = run("send", *flags(one, "libp2p", "carol"), "from the shell")
        assert sent.returncode == 0, sent.stderr
        with Terminal("chat", *flags(one, "libp2p", "dave")) as terminal:
            terminal.until("from the shell")
        with Terminal("listen", *flags(one, "libp2p", "erin")) as terminal:
            terminal.until("from the shell")


def test_a_node_that_cannot_listen_for_want_of_packages() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBP2P], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 4
    assert ended.stderr.startswith("error: libp2p peers need more packages: pip ")
