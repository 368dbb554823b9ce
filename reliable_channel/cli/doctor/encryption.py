"""Check that the channel's key decrypts the newest messages."""

from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Final

from ..._contracts.finding import Level
from ...errors import ChannelUnavailable
from ...transport.base import StoreUnavailable
from .findings import Findings

if TYPE_CHECKING:
    from ...channel import ReliableChannel

LOOK_BACK_NS: Final = 3_600_000_000_000
MESSAGES: Final = 200
"""Maximum number of messages that are decrypted as a test."""


async def examine_encryption(findings: Findings, channel: "ReliableChannel") -> None:
    """Decrypt the messages of the last hour in Store, as a test of the key. Another check reports a
    node that is away."""
    unopened = channel._unopened()
    if unopened is None:
        return
    tried, now_ns = 0, channel._now_ns()
    try:
        async with AsyncExitStack() as stack:
            transport = await channel._connect(stack)
            pages = transport.by_time(now_ns - LOOK_BACK_NS, now_ns)
            async with aclosing(pages):
                async for page in pages:
                    for received in page:
                        await unopened.try_open(received.message_hash, received.payload)
                    tried += len(page)
                    if tried >= MESSAGES:
                        break
    except (ChannelUnavailable, StoreUnavailable):
        return
    where = channel.content_topic
    if unopened.found is not None:
        level: Level = "warning" if unopened.has_opened else "problem"
        text, _, advice = unopened.found.partition("; ")
        findings.add(level, "encryption", where, text, advice)
    elif unopened.has_opened:
        findings.add("ok", "encryption", where, "messages of the last hour open with the key")
    else:
        text = "Store has no message of the last hour to try the key on"
        findings.add("note", "encryption", where, text)
