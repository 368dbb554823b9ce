"""Channels whose senders are proven, over a network in memory."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageReceived, ReliableChannel
from reliable_channel.diagnostics import MessageRejected, RejectionReason
from reliable_channel.transport import Envelope, MemoryNetwork, MemoryTransport, TransportError
from reliable_channel_encryption import Keyring, Secret, SymmetricEncryption
from reliable_channel_signing import Ed25519Signer, KnownKeys, SigningKey

pytestmark = pytest.mark.anyio

KEYS = {name: SigningKey(bytes([n] * 32)) for n, name in enumerate(("alice", "bob", "eve"), 1)}
DIDS = {name: [key.did] for name, key in KEYS.items()}
E = TypeVar("E")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def channels(
    network: MemoryNetwork, **arguments: Mapping[str, Any]
) -> AsyncIterator[tuple[ReliableChannel, ...]]:
    """One open channel a participant, in the order of their names."""
    async with AsyncExitStack() as stack:
        yield tuple(
            [
                await stack.enter_async_context(
                    ReliableChannel(
                        channel_id="general",
                        transport=network.transport(),
                        **{"sender_id": name, **given},
                    )
                )
                for name, given in arguments.items()
            ]
        )


def named(name: str, *, key: str = "", **known: list[str]) -> dict[str, Any]:
    """The arguments of a participant with a name, who demands signatures."""
    signer = Ed25519Signer(KEYS[key or name], KnownKeys({**DIDS, **known}))
    return {"sender_id": name, "signing": signer, "require_signatures": True}


async def first(channel: ReliableChannel, kind: type[E]) -> E:
    async for event in channel.events():
        if isinstance(event, kind):
            return event
    raise AssertionError("the channel closed")


async def test_participants_whose_ids_are_keys_need_to_know_nobody() -> None:
    signers = [Ed25519Signer(key) for key in KEYS.values()]
    arguments = {
        name: {"sender_id": signer.sender_id, "signing": signer, "require_signatures": True}
        for name, signer in zip(KEYS, signers, strict=True)
    }
    async with channels(MemoryNetwork(), **arguments) as (alice, bob, eve):
        await alice.send(b"hello")
        for other in (bob, eve):
            received = await first(other, MessageReceived)
            assert (received.sender_id, received.content) == (signers[0].sender_id, b"hello")


async def test_a_forger_is_refused_and_the_true_sender_heard() -> None:
    # To itself, eve's key is alice's; nobody else thinks so.
    forger = named("alice", key="eve", alice=DIDS["eve"])
    async with channels(MemoryNetwork(), alice=named("alice"), bob=named("bob"), eve=forger) as (
        alice,
        bob,
        eve,
    ):
        await eve.send(b"I am alice")
        refused = await first(bob, MessageRejected)
        assert refused.reason is RejectionReason.UNPROVEN_SENDER
        assert refused.sender_id == "alice"
        await alice.send(b"so am I")
        assert (await first(bob, MessageReceived)).content == b"so am I"


async def test_peers_who_do_not_sign_are_heard_where_nobody_demands() -> None:
    async with channels(
        MemoryNetwork(),
        alice={"signing": Ed25519Signer(KEYS["alice"], KnownKeys(DIDS))},
        old={},
    ) as (alice, old):
        await alice.send(b"signed")
        assert (await first(old, MessageReceived)).content == b"signed"
        await old.send(b"unsigned")
        assert (await first(alice, MessageReceived)).content == b"unsigned"


@pytest.mark.parametrize("order", ["sds-then-encrypt", "encrypt-then-sds"])
@pytest.mark.parametrize("profile", ["spec", "nim"])
async def test_with_encryption_segments_and_both_dialects(order: str, profile: str) -> None:
    secret, content = Secret.generate(), bytes(range(256)) * 2_000
    both = {
        "encryption_order": order,
        "wire_profile": profile,
        "segmentation": "nim-segmentation",
    }

    def arguments(name: str) -> dict[str, Any]:
        return {
            **both,
            **named(name),
            "encryption": SymmetricEncryption(Keyring(secret), context=b"general"),
        }

    async with channels(MemoryNetwork(), alice=arguments("alice"), bob=arguments("bob")) as (
        alice,
        bob,
    ):
        await alice.send(content)
        assert (await first(bob, MessageReceived)).content == content


async def test_a_signing_that_does_not_prove_its_own_sender_is_refused() -> None:
    signer = Ed25519Signer(KEYS["alice"])
    with pytest.raises(ValueError, match=r"`sender_id` is 'alice'.* is not a did:key"):
        ReliableChannel(channel_id="general", sender_id="alice", signing=signer)
    with pytest.raises(ValueError, match=r"`sender_id` is 'bob'.*does not belong to"):
        ReliableChannel(
            channel_id="general",
            sender_id="bob",
            signing=Ed25519Signer(KEYS["alice"], KnownKeys(DIDS)),
        )


async def test_demanding_needs_something_that_verifies() -> None:
    with pytest.raises(ValueError, match="`require_signatures` needs `signing`"):
        ReliableChannel(channel_id="general", sender_id="alice", require_signatures=True)


class KeyAgent(Ed25519Signer):
    """A signer whose key may be away, as one in another process."""

    is_away = False
    asked: anyio.Event | None = None

    def sign(self, data: bytes) -> bytes:
        if self.is_away:
            if self.asked is not None:
                self.asked.set()
            raise ConnectionError("the key agent does not answer")
        return super().sign(data)


class Away(MemoryTransport):
    async def publish(self, envelope: Envelope) -> None:
        raise TransportError("away")


@pytest.mark.parametrize("is_away_at_start", [True, False])
async def test_a_channel_whose_key_is_away_hears_others_and_says_so(is_away_at_start: bool) -> None:
    agent = KeyAgent(KEYS["alice"], KnownKeys(DIDS))
    agent.is_away = is_away_at_start
    own = {**named("alice"), "signing": agent, "options": ChannelOptions(sync_min_interval_ms=10)}
    async with channels(MemoryNetwork(), alice=own, bob=named("bob")) as (alice, bob):
        assert bool(alice.health().warnings) is is_away_at_start
        await bob.send(b"hello")
        assert (await first(alice, MessageReceived)).content == b"hello"
        agent.is_away, agent.asked = True, anyio.Event()
        await agent.asked.wait()  # for a sync message
        (warning,) = alice.health().warnings
        assert "cannot sign (ConnectionError('the key agent does not answer'))" in warning
        with pytest.raises(ConnectionError):
            await alice.send(b"refused")
        agent.is_away = False
        await alice.send(b"signed")
        assert alice.health().warnings == ()
        assert (await first(bob, MessageReceived)).content == b"signed"


async def test_saved_messages_leave_after_a_restart_although_the_key_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network, agent = MemoryNetwork(), KeyAgent(KEYS["alice"], KnownKeys(DIDS))
    own: Any = {**named("alice"), "channel_id": "general", "signing": agent}
    own["state"] = f"sqlite:///{tmp_path}/alice.db"
    async with ReliableChannel(transport=Away(network), **own) as alice:
        await alice.send(b"accepted before")
    agent.is_away = True
    async with (
        ReliableChannel(channel_id="general", transport=network.transport(), **named("bob")) as bob,
        ReliableChannel(transport=network.transport(), **own),
    ):
        assert (await first(bob, MessageReceived)).content == b"accepted before"
    assert [r.levelname for r in caplog.records if getattr(r, "event", "") == "unsigned"] == [
        "WARNING"
    ]


async def test_a_key_that_comes_back_must_prove_the_sender() -> None:
    agent = KeyAgent(KEYS["eve"], KnownKeys(DIDS))
    agent.is_away = True
    own = {**named("alice"), "signing": agent}
    async with channels(MemoryNetwork(), alice=own) as (alice,):
        agent.is_away = False
        with pytest.raises(ValueError, match=r"`sender_id` is 'alice'.*does not belong to"):
            await alice.send(b"as alice")
        assert "does not belong to" in alice.health().warnings[0]
