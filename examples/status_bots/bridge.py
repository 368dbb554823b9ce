"""Brings the items of an RSS file into a channel, each once, as messages of another network.

    python bridge.py http://127.0.0.1:8645 COMMUNITY CHANNEL feed.xml

Something else writes the file (`curl -o feed.xml …`); it is read again every minute.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

from reliable_channel_status import BridgeMessage
from reliable_channel_status.bot import StatusBot

MAX_BYTES = 5_000_000


def items(feed: Path) -> list[BridgeMessage]:
    """The items of an RSS 2.0 file, the oldest first; an item without link or guid is left out."""
    data = feed.read_bytes()[: MAX_BYTES + 1]
    if len(data) > MAX_BYTES or b"<!ENTITY" in data:
        raise ValueError(f"{feed} is larger than {MAX_BYTES} bytes, or declares entities")
    channel = ElementTree.fromstring(data).find("channel")
    if channel is None:
        raise ValueError(f"{feed} is no RSS 2.0: it has no channel")
    found = []
    for item in channel.iterfind("item"):
        link = item.findtext("link", "").strip()
        guid = item.findtext("guid", "").strip() or link
        if guid:
            message = BridgeMessage(
                bridge_name="rss",
                user_name=channel.findtext("title", "").strip() or feed.name,
                content=f"{item.findtext('title', '').strip()}\n{link}".strip() or guid,
                message_id=guid,
            )
            found.append(message)
    return found[::-1]


def make_bot(node: str, community: str, channel: str, feed: Path) -> StatusBot:
    bot = StatusBot(node=node, community=community, channels=[channel])

    @bot.every(seconds=60)
    async def bring() -> None:
        for item in items(feed):
            await bot.channel(channel).send(bridged=item, once=item.message_id)

    return bot


if __name__ == "__main__":
    make_bot(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])).run()
