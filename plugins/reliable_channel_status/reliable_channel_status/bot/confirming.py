"""Checks that Store has the bot's messages, and publishes missing ones again.

A message counts as missing after two queries, because a node takes a while to store. A repeated
message gets a new timestamp, because archives refuse old timestamps (after 20 s in nwaku). Clients
take the repeated message for the first one, because both have the same id.
"""

import logging
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Final

import anyio

from waku import WakuMessage, message_hash
from waku.errors import WakuError

from .link import NS_PER_MS, Link
from .memory import OutboxEntry
from .options import BotOptions
from .session import Session

LOOKS: Final = 2


class Confirmer:
    def __init__(self, session: Session, link: Link, options: BotOptions) -> None:
        self._session = session
        self._link = link
        self._interval_s = options.confirm_ms / 1000
        self._publish_at_most = options.publish_at_most
        self._news = anyio.Event()

    @property
    def is_on(self) -> bool:
        return self._interval_s > 0

    def wake(self) -> None:
        """Note that a new message should be looked for in Store."""
        self._news.set()

    async def run(self) -> None:
        """Look for the bot's messages in Store until cancelled."""
        while True:
            if not self._session.memory.unconfirmed:
                self._news = anyio.Event()
                await self._news.wait()
            await anyio.sleep(self._interval_s)
            try:
                await self._look()
            except WakuError as error:
                # Without Store nobody can tell; with one that is away the next look will.
                self._session.reporter.log("store_unavailable", logging.DEBUG, why=str(error))
                self._give_up_without_store()

    async def _look(self) -> None:
        by_route: dict[str, list[OutboxEntry]] = {}
        for entry in self._session.memory.unconfirmed:
            by_route.setdefault(entry.route, []).append(entry)
        for shard, waiting in by_route.items():
            hashes = {entry.number: _hashes(shard, entry) for entry in waiting}
            found = await self._in_store(shard, waiting, set().union(*hashes.values()))
            for entry in waiting:
                self._judge(entry, hashes[entry.number] <= found)

    async def _in_store(
        self, shard: str, waiting: Sequence[OutboxEntry], wanted: set[bytes]
    ) -> set[bytes]:
        """Which of some messages Store has: asked by hash, and by time for what that did not find,
        as a Store may refuse or ignore hashes."""
        found = set[bytes]()
        with suppress(WakuError):
            found = {one.message_hash for one in await self._link.by_hash(shard, list(wanted))}
        if found == wanted:
            return found
        messages = [message for entry in waiting for message in entry.messages]
        topics = {message.content_topic for message in messages}
        times = [message.timestamp or 0 for message in messages]
        pages = self._link.stored(shard, sorted(topics), min(times), max(times) + 1)
        async with aclosing(pages):
            async for page in pages:
                found |= wanted & {one.message_hash for one in page}
        return found

    def _judge(self, entry: OutboxEntry, is_stored: bool) -> None:
        memory, reporter = self._session.memory, self._session.reporter
        if is_stored:
            reporter.count("stored")
            memory.confirmed(entry)
            return
        entry.looks += 1
        if entry.looks < LOOKS:
            return
        if entry.published >= self._publish_at_most:
            reporter.count("not_stored")
            reporter.log("not_stored", logging.WARNING, published=entry.published)
            memory.confirmed(entry)
            return
        reporter.count("published_again")
        memory.publish_again(entry, _stamped(entry.messages, self._session.now_ms()))
        self._session.has_mail.set()

    def _give_up_without_store(self) -> None:
        """After as many looks as it would have taken, the result is unknown and nothing is sent
        again."""
        for entry in self._session.memory.unconfirmed:
            entry.looks += 1
            if entry.looks > LOOKS * self._publish_at_most:
                self._session.memory.confirmed(entry)


def _hashes(shard: str, entry: OutboxEntry) -> set[bytes]:
    return {message_hash(shard, message) for message in entry.messages}


def _stamped(messages: tuple[WakuMessage, ...], now_ms: int) -> tuple[WakuMessage, ...]:
    return tuple(replace(message, timestamp=now_ms * NS_PER_MS) for message in messages)
