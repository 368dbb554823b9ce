"""Deletes links to strangers' sites and floods, and takes reports to a channel of the moderators.

    python moderation.py http://127.0.0.1:8645 COMMUNITY MODS_CHANNEL status.app github.com

Clients obey its deletions if the community's owner made it a moderator.
"""

import re
import sys
from collections.abc import Iterable

from reliable_channel_status import mention
from reliable_channel_status.bot import Message, StatusBot

LINK = re.compile(r"https?://(?:[^\s/@]*@)?([^\s/:?#]+)", re.IGNORECASE)
MESSAGES = 6
SECONDS = 10
USERS = 10_000


def make_bot(node: str, community: str, mods: str, hosts: Iterable[str]) -> StatusBot:
    bot = StatusBot(node=node, community=community)
    allowed = {host.lower() for host in hosts}
    lately: dict[str, list[int]] = {}

    def is_allowed(host: str) -> bool:
        return any(host == site or host.endswith(f".{site}") for site in allowed)

    def is_flood(message: Message) -> bool:
        at_ms = message.payload.clock
        times = [t for t in lately.pop(message.author.hex, []) if t > at_ms - SECONDS * 1000]
        lately[message.author.hex] = [*times, at_ms][-MESSAGES - 1 :]
        if len(lately) > USERS:
            del lately[next(iter(lately))]
        return len(times) >= MESSAGES

    async def report(message: Message, why: str) -> None:
        quoted = message.text[:500]
        text = f"{why}: {mention(message.author)} wrote in {message.room.name}: {quoted}"
        await bot.channel(mods).send(text, once=f"{why} {message.message_id}")

    @bot.on_message
    async def filter_messages(message: Message) -> None:
        if message.by_moderator or message.room.name == mods:
            return
        strange = [h for h in LINK.findall(message.text) if not is_allowed(h.lower().rstrip("."))]
        floods = is_flood(message)
        if strange or floods:
            await message.delete()
            await report(message, f"link to {strange[0]}" if strange else "flood")

    @bot.command("report")
    async def to_mods(message: Message, *, why: str) -> str:
        """Reports a message to the moderators; answer the message in question."""
        about = message.payload.response_to or "nothing"
        await report(message, f"report about {about}")
        return "Thank you; the moderators read it."

    return bot


if __name__ == "__main__":
    make_bot(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]).run()
