"""Invitations: what they carry, what they never carry, and what is refused."""

from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel import ReliableChannel, run
from reliable_channel.conversation.invitation import join_arguments
from reliable_channel.spi import EncryptionPair
from reliable_channel_encryption import Keyring, Secret, SymmetricEncryption
from reliable_channel_encryption import plugin as encryption_plugin

KEY = bytes(range(32))


def channel(node: Any = "http://10.0.0.7:8645", **arguments: Any) -> ReliableChannel:
    return ReliableChannel(node, channel_id="ops", sender_id="alice", **arguments)


def test_golden_text() -> None:
    text = channel(preset="auto").invite()
    assert text == "reliable-channel:?v=1&channel_id=ops&preset=auto&node=http://10.0.0.7:8645"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"preset": "small-group", "node": "udp+multicast://239.1.2.3:5007"},
        {"node": ["http://a:1", "https://b/path"], "wire_profile": "nim", "cluster_id": 16},
        {"content_topic": "/my app/1/ü&=/proto", "bloom": {"capacity": 500}},
        {"node": None, "pubsub_topic": "/waku/2/rs/16/32", "cluster_id": 16},
    ],
)
def test_who_joins_has_the_same_channel(arguments: dict[str, Any]) -> None:
    alice = channel(**arguments)
    bob = ReliableChannel.join(alice.invite(), sender_id="bob")
    assert bob.sender_id == "bob" and bob.channel_id == "ops"
    assert bob.content_topic == alice.content_topic
    assert bob.options == alice.options
    node = arguments.get("node", "http://10.0.0.7:8645")
    given = [node] if isinstance(node, str) else node
    assert join_arguments(alice.invite()).get("node") == given


def test_a_wrapped_text_is_read() -> None:
    text = channel(preset="auto").invite()
    assert join_arguments(f"  {text[:40]}\n    {text[40:]}\n") == join_arguments(text)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf"]), min_size=1))
def test_any_name_survives(name: str) -> None:
    alice = ReliableChannel("memory://x", channel_id=name, sender_id="alice")
    assert ReliableChannel.join(alice.invite(), sender_id="b").channel_id == name


def test_it_joins(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            channel("memory://invited", preset="auto") as alice,
            ReliableChannel.join(
                alice.invite(), sender_id="bob", state=f"sqlite:///{tmp_path}/bob.db"
            ) as bob,
        ):
            await alice.send(b"welcome", wait="acknowledged")
            assert (await anext(bob.messages())).content == b"welcome"

    run(main)


def test_the_key_is_there_on_request_only() -> None:
    encryption = SymmetricEncryption(Keyring(Secret(KEY)), context=b"ops")
    alice = channel("memory://secret", encryption=encryption, preset="auto")
    assert KEY.hex() not in alice.invite()
    with pytest.raises(ValueError, match="`encryption` is missing"):
        ReliableChannel.join(alice.invite(), sender_id="bob")
    text = alice.invite(key=True)
    bob = ReliableChannel.join(text, sender_id="bob", plugins=[encryption_plugin])

    async def main() -> None:
        async with alice, bob:
            await alice.send(b"secret", wait="acknowledged")
            assert (await anext(bob.messages())).content == b"secret"

    run(main)


@pytest.mark.parametrize("form", ["aes-256-gcm:{}", "aes-256-gcm:{}.", "nope:{}", "{}.6f"])
def test_no_error_shows_the_key(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = KEY.hex()[2:]
    (tmp_path / short[1:]).write_text(KEY.hex())
    monkeypatch.chdir(tmp_path)
    text = f"reliable-channel:?v=1&channel_id=ops&key={form.format(short)}"
    with pytest.raises(ValueError) as caught:
        ReliableChannel.join(text, sender_id="bob", plugins=[encryption_plugin])
    assert short[1:] not in "".join(format_exception(caught.value))


@pytest.mark.parametrize("value", ["true", "1", "yes", "True", ""])
def test_a_changed_text_joins_no_encrypted_channel_in_clear(value: str) -> None:
    text = f"reliable-channel:?v=1&channel_id=ops&encrypted={value}"
    with pytest.raises(ValueError, match="`encryption` is missing"):
        ReliableChannel.join(text, sender_id="bob")


def test_an_encryption_without_a_text_is_refused() -> None:
    async def same(content: bytes) -> bytes:
        return content

    alice = channel(encryption=EncryptionPair(same, same))
    assert "encrypted=true" in alice.invite()
    with pytest.raises(ValueError, match="`key` needs an encryption that can return its key"):
        alice.invite(key=True)


def test_credentials_and_paths_stay_here(tmp_path: Path) -> None:
    alice = channel("http://user:token@10.0.0.7:8645", state=f"sqlite:///{tmp_path}/a.db")
    text = alice.invite()
    assert "token" not in text and "sqlite" not in text and "node=http://10.0.0.7:8645" in text
    assert "node=http://public:1" in alice.invite(node="http://public:1")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello", "must begin with 'reliable-channel:[?]'"),
        ("reliable-channel:?v=1&channel_id=" + "x" * 5_000, "must begin .* at most 4,096"),
        ("reliable-channel:?channel_id=ops", "`v` of the invitation must be 1"),
        ("reliable-channel:?v=2&channel_id=ops", "`v` of the invitation must be 1"),
        ("reliable-channel:?v=1", "no part `channel_id`"),
        ("reliable-channel:?v=1&channel_id=ops&channel_id=x", "`channel_id` twice"),
        ("reliable-channel:?v=1&channel_id=ops&state=sqlite:///x", "unknown part `state`"),
        ("reliable-channel:?v=1&channel_id=ops&journal=x", "unknown part `journal`"),
        ("reliable-channel:?v=1&channel_id=ops&plugins=x", "unknown part `plugins`"),
        ("reliable-channel:?v=1&channel_id=ops&node=file:///etc/passwd", "refuses `node`"),
        ("reliable-channel:?v=1&channel_id=ops&network=/tmp/x.toml", "refuses `network`"),
        ("reliable-channel:?v=1&channel_id=ops&network=x.toml", "refuses `network`"),
        ("reliable-channel:?v=1&channel_id=ops&key=aes-256-gcm:///etc/x", "refuses `key`"),
        ("reliable-channel:?v=1&channel_id=ops&cluster_id=many", "`cluster_id` must be a whole"),
    ],
)
def test_what_is_refused_is_named(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        join_arguments(text)


@given(st.text())
def test_no_text_crashes(text: str) -> None:
    for given_text in (text, f"reliable-channel:?v=1&channel_id=x&{text}"):
        try:
            join_arguments(given_text)
        except ValueError as error:
            assert str(error)


def test_an_option_without_a_text_is_refused() -> None:
    profile = channel().options.profile
    with pytest.raises(ValueError, match="`wire_profile` must be a name"):
        from dataclasses import replace

        channel(wire_profile=replace(profile, name="mine")).invite()
