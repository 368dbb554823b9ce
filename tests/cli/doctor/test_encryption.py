"""A key that does not open what others sent is found before a channel is."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageSent
from reliable_channel.cli.doctor.encryption import examine_encryption
from reliable_channel.cli.doctor.findings import Findings
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import listening, make_channel
from tests.runtime.test_stages import toy

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("senders_key", "order", "level", "text"),
    [
        (1, "sds-then-encrypt", "ok", "open with the key"),
        (2, "sds-then-encrypt", "problem", "do not open with the key of this channel: "),
        (1, "encrypt-then-sds", "problem", "another order of encryption: "),
        (None, "sds-then-encrypt", "note", "no message of the last hour"),
    ],
)
async def test_what_store_has_is_tried(
    senders_key: int | None, order: Any, level: str, text: str
) -> None:
    network, findings = MemoryNetwork(), Findings()
    if senders_key is not None:
        options = ChannelOptions(encryption_order=order)
        key = toy(senders_key)
        alice = make_channel(network.transport(), "alice", encryption=key, options=options)
        async with listening(alice) as told:
            await alice.send(b"hello")
            await told.first(MessageSent)
    bob = make_channel(network.transport(), "bob", encryption=toy(1))
    with anyio.fail_after(20):
        await examine_encryption(findings, bob)
    (found,) = findings.found
    assert (found.level, found.check) == (level, "encryption")
    assert text in found.text


async def test_a_channel_without_a_key_and_a_node_that_is_away_are_not_judged() -> None:
    findings = Findings()
    network = MemoryNetwork()
    await examine_encryption(findings, make_channel(network.transport(), "bob"))
    assert not findings.found
