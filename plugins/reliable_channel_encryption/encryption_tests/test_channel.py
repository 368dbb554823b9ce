"""A channel that is encrypted: who reads it, who does not, and what is on the wire."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import anyio.lowlevel
import pytest

from reliable_channel import MessageReceived, ReliableChannel, SendFailed
from reliable_channel.events import AnyEvent
from reliable_channel.transport import MemoryNetwork
from reliable_channel_encryption import Keyring, Secret, SymmetricEncryption

pytestmark = pytest.mark.anyio

SECRET, OTHER_SECRET = Secret(bytes(range(32))), Secret(bytes(range(1, 33)))
CONTENT = b"for those who have the key"

E = TypeVar("E", bound=AnyEvent)


def encryption(*secrets: Secret) -> SymmetricEncryption:
    return SymmetricEncryption(Keyring(*secrets), context=b"general")


@asynccontextmanager
async def channels(
    network: MemoryNetwork, **encryptions: SymmetricEncryption | None
) -> AsyncIterator[list[ReliableChannel]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                ReliableChannel(
                    transport=network.transport(),
                    channel_id="general",
                    sender_id=sender_id,
                    encryption=encryption,
                )
            )
            for sender_id, encryption in encryptions.items()
        ]


async def first(channel: ReliableChannel, kind: type[E]) -> E:
    async for event in channel.events():
        if isinstance(event, kind):
            return event
    raise AssertionError(f"the channel closed without {kind.__name__}")


async def test_those_with_the_key_read_and_nobody_else() -> None:
    network = MemoryNetwork()
    async with channels(
        network,
        alice=encryption(SECRET),
        bob=encryption(OTHER_SECRET, SECRET),
        eve=encryption(OTHER_SECRET),
        plain=None,
    ) as (alice, bob, eve, plain):
        await alice.send(CONTENT)
        assert (await first(bob, MessageReceived)).content == CONTENT
        while not eve.statistics().transport.foreign:
            await anyio.lowlevel.checkpoint()
        assert [len(channel.log()) for channel in (alice, bob, eve, plain)] == [1, 1, 0, 0]

    assert network.store
    for received in network.store.values():
        for told in (CONTENT, b"alice", b"general"):
            assert told not in received.payload


async def test_what_cannot_be_sealed_never_goes_out() -> None:
    network = MemoryNetwork()
    broken = SymmetricEncryption(Keyring(SECRET), random=lambda _: b"")
    async with channels(network, alice=broken) as (alice,):
        request = await alice.send(CONTENT)
        failed = await first(alice, SendFailed)
        assert failed.message_id == request.message_id
        assert "random source" in failed.reason
    assert not network.store
