"""One root for every error of the SDK, and arguments that fail at once and say what to write."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import reliable_channel
from reliable_channel import (
    BlockingReliableChannel,
    ChannelOptions,
    ReliableChannel,
    ReliableChannelError,
)
from reliable_channel.transport import MemoryNetwork, WakuSettings
from waku import WakuError

NOT_OF_CHANNELS = {"reliable_channel.cli", "reliable_channel.testing"}
"""What an application that has a channel never calls."""
INSIDE = {
    "BloomFilterError",
    "CodecError",
    "DamagedRow",
    "NotForUs",
    "NotOpened",
    "PayloadTooLarge",
    "StageError",
}
"""Raised and caught inside a channel."""
ASSERTIONS = {"IllegalTransition"}
"""Raised by checks that only tests and simulations switch on."""


def own_errors() -> Iterator[type[Exception]]:
    """The exceptions that the modules of a channel define."""
    for module in pkgutil.walk_packages(reliable_channel.__path__, "reliable_channel."):
        if any(module.name.startswith(name) for name in NOT_OF_CHANNELS):
            continue
        if module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Exception):
                if value.__module__ == module.name:
                    yield value


@pytest.mark.parametrize("error", list(own_errors()), ids=lambda error: error.__name__)
def test_every_error_has_the_one_root(error: type[Exception]) -> None:
    known = error.__name__ in INSIDE | ASSERTIONS
    assert issubclass(error, ReliableChannelError) or known


@pytest.mark.parametrize("package", ["encryption", "mvds", "svs"])
def test_errors_of_plugins_have_it_too(package: str) -> None:
    module = importlib.import_module(f"reliable_channel_{package}.errors")
    errors = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Exception)]
    assert errors
    assert all(issubclass(error, ReliableChannelError) for error in errors)


@pytest.mark.parametrize(
    "wrong",
    [
        {"content_topic": "general"},
        {"pubsub_topic": "nonsense"},
        {"cluster_id": -1},
        {"num_shards": 0},
    ],
)
def test_no_error_of_waku_leaves_a_channel(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:
        make(**wrong)
    assert not isinstance(caught.value, WakuError)


def make(**arguments: Any) -> ReliableChannel:
    return ReliableChannel(**{"channel_id": "c", "sender_id": "a", **arguments})


class NoDecryption:
    async def encrypt(self, content: bytes) -> bytes:
        return content


class Scheme(NoDecryption):
    async def decrypt(self, payload: bytes) -> bytes:
        return payload


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"options": {}}, r"^`options` must be a ChannelOptions \(got dict\); write options=Chan"),
        ({"options": {"a": 1}}, r"^`options` must be a ChannelOptions \(got dict\); write"),
        ({"options": ChannelOptions}, r"\(got the class ChannelOptions\)"),
        ({"encryption": object()}, r"^`encryption` must be a URL, or have async methods `encrypt`"),
        ({"encryption": NoDecryption()}, r"^`encryption` must be .* \(got NoDecryption\)"),
        ({"encryption": Scheme}, r"^`encryption` must be .* \(got the class Scheme\)"),
        ({"signing": object()}, r"^`signing` must have methods `sign` and `verify` \(got object\)"),
        ({"transport": object()}, r"^`transport` must have the methods of .* \(got object\)"),
        (
            {"transport": "http://a"},
            r"\(got str\); .*, or give the address of a node as `node`$",
        ),
        ({"marker": "x"}, r"^`marker` must be bytes, at most 64 \(got .x.\)"),
        ({"marker": 5}, r"^`marker` must be bytes, at most 64 \(got 5\)"),
        ({"require_signatures": True}, r"^`require_signatures` needs `signing`, which is None$"),
        ({"node": "localhost:8645"}, r"\(got 'localhost:8645'\); write 'http://localhost:8645'$"),
        ({"node": "node"}, r"^`node` must be .* \(got 'node'\); write 'http://node'$"),
        ({"node": 5}, r"^`node` must be an http or https address, a multiaddress .* \(got 5\)$"),
    ],
)
def test_a_wrong_argument_fails_at_once_and_says_what_to_write(
    wrong: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        make(**wrong)


def test_an_unknown_option_is_named_with_the_closest_one() -> None:
    with pytest.raises(TypeError, match=r"`retry_interval`; did you mean `retry_interval_ms`?"):
        make(retry_interval=5)
    with pytest.raises(TypeError, match=r"^there is no argument or option `xyzzy`$"):
        make(xyzzy=5)


def test_a_channel_without_async_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"`async with .* `with BlockingReliableChannel\(…\)`"):
        with make(node="memory://x"):
            pass


@pytest.mark.parametrize("send", ["send", "send_ephemeral"])
@pytest.mark.anyio
async def test_a_text_has_to_be_encoded(send: str) -> None:
    async with make(transport=MemoryNetwork().transport()) as channel:
        with pytest.raises(TypeError, match=r"^`payload` must be bytes \(got str\); encode it: "):
            await getattr(channel, send)("text")
        with pytest.raises(TypeError, match=r"^`payload` must be bytes \(got NoneType\)$"):
            await getattr(channel, send)(None)
        assert await getattr(channel, send)(bytearray(b"like bytes"))


def test_a_text_has_to_be_encoded_without_async_too() -> None:
    with BlockingReliableChannel("memory://text", channel_id="c", sender_id="a") as channel:
        with pytest.raises(TypeError, match="encode it"):
            channel.send("text")  # type: ignore[arg-type]


def test_a_wrong_topic_is_named() -> None:
    with pytest.raises(ValueError, match=r"^`content_topic`, .*'general'.*write /application/"):
        _ = WakuSettings("general").shard
