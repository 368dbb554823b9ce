"""Participants of a channel, each with an embedded node of its own, as logos-delivery's suite has
them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from reliable_channel import ChannelOptions, ReliableChannel
from reliable_channel.transport import WakuTransport
from reliable_channel.transport.settings import WakuSettings
from tests.channel.world import make_channel
from tests.transport.nodes import CONTENT_TOPIC, Line
from waku.node import EmbeddedNode, NodeOptions

OTHER_TOPIC: Final = "/reliable-channel/1/elsewhere/proto"

# What the suite waits for at most, in seconds.
DELIVERY_S: Final = 50
NOTHING_MAY_COME_S: Final = 10
LATE_JOIN_S: Final = 90
REPAIR_S: Final = 330

NIM: Final = replace(ChannelOptions(wire_profile="nim"), sync_min_interval_ms=0)
"""logos-delivery's dialect: its marker and its segments. It sends no sync messages."""
ALONE: Final = replace(NIM, retrieval_strategy="none", retry_interval_ms=3_600_000)
"""Nothing brings back what was missed."""
REPAIRING: Final = replace(ALONE, retrieval_strategy="sds-r-only")
"""The other participants alone do."""


@asynccontextmanager
async def mesh(*names: str, stores: Path | None = None) -> AsyncIterator[list[Line]]:
    """A line to a node for each name; the nodes are joined in a chain.

    Their messages outlive them where there is a folder for their stores.
    """
    async with AsyncExitStack() as stack:
        lines: list[Line] = []
        for name in names:
            line, store = Line(), ":memory:" if stores is None else stores / name
            options = NodeOptions(store_path=store)
            line.connect(await stack.enter_async_context(EmbeddedNode(options)))
            if lines:
                assert line.node is not None and lines[-1].node is not None
                line.node.join(lines[-1].node)
            lines.append(line)
        yield lines


def transport(line: Line, content_topic: str = CONTENT_TOPIC) -> WakuTransport:
    return WakuTransport("http://node", WakuSettings(content_topic), app=line)


def participant(
    line: Line,
    sender_id: str,
    *,
    content_topic: str = CONTENT_TOPIC,
    options: ChannelOptions = NIM,
    **arguments: Any,
) -> ReliableChannel:
    return make_channel(
        transport(line, content_topic),
        sender_id,
        options=options,
        seed=len(sender_id),
        **arguments,
    )
