"""What a large Status bot costs while little happens: `python -m bench.idle`.

The bot is a member of 50 communities with 500 named channels and has 5,000 contacts. Its state is
in a file, its node in another process, reached by REST as in production. Measured are the CPU time
and the resident memory of the bot's process after its start, without messages and with one a
second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import anyio

from bench.memory import resident_bytes
from reliable_channel.spi import SqliteStateStore
from reliable_channel_status import (
    DEFAULT_SHARD,
    Access,
    ChatMessage,
    Community,
    CommunityDescription,
    CommunityMember,
    CommunityPermissions,
    MessageType,
    PrivateKey,
    Sealer,
)
from reliable_channel_status.bot import BotMemory, Message, StatusBot, Surroundings
from reliable_channel_status.bot.direct import Contact, Contacts, ContactState
from reliable_channel_status.community_edits import with_channel
from waku import WakuClient
from waku.node import NodeOptions, serve

COMMUNITIES: Final = 50
CHANNELS: Final = 10
"""Of each community."""
CONTACTS: Final = 5_000
MEMBERS: Final = 20
"""Of each community, beside the bot."""
SETTLE_S: Final = 10.0


def key_of(name: str) -> PrivateKey:
    """The same key in each run."""
    return PrivateKey(sha256(name.encode()).digest())


BOT: Final = key_of("bot")
USER: Final = key_of("user 0")


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the bot is."""

    communities: int = COMMUNITIES
    channels: int = CHANNELS
    contacts: int = CONTACTS

    def owner(self, number: int) -> PrivateKey:
        """The key of a community."""
        return key_of(f"community {number}")

    def uuids(self) -> list[str]:
        """The channels of each community."""
        return [f"00000000-0000-4000-8000-{number:012}" for number in range(self.channels)]


async def measure(scale: Scale, seconds: float, url: str, state: Path) -> None:
    """Run the bot against a node and print what it takes."""
    make_contacts(scale, state)
    bot, heard = StatusBot(node=url, key_file="unused"), 0
    began = time.process_time()
    for number in range(scale.communities):
        bot.join(Community(scale.owner(number).public_key), scale.uuids())

    started = anyio.Event()

    @bot.task
    async def start() -> None:
        started.set()

    @bot.on_message
    async def count(message: Message) -> None:
        nonlocal heard
        heard += 1

    @bot.on_direct_message
    async def never(message: Message) -> None:
        raise AssertionError("no user writes to the bot alone")

    memory = BotMemory(SqliteStateStore(state), BOT.public_key, now_ms())
    async with WakuClient(url) as client, WakuClient(url) as user_client:
        await client.relay_subscribe([str(DEFAULT_SHARD)])
        for number in range(scale.communities):
            await describe(user_client, scale, number)
        async with anyio.create_task_group() as tasks:
            around = Surroundings(key=BOT, memory=memory, client=client, now_ms=now_ms)
            tasks.start_soon(bot.serve, around)
            await started.wait()
            await anyio.sleep(SETTLE_S)
            print(f"start: {time.process_time() - began:.1f} s of CPU time")
            members = sum(
                bot.standing(Community(scale.owner(number).public_key)) == "member"
                for number in range(scale.communities)
            )
            print(f"member of {members} communities with {len(list(bot.rooms))} channels, ", end="")
            print(f"{len(bot.contacts)} contacts")
            await watch("no messages", seconds)
            before = heard
            async with anyio.create_task_group() as talking:
                talking.start_soon(talk, user_client, scale)
                await watch("a message a second", seconds)
                talking.cancel_scope.cancel()
            print(f"{heard - before} messages heard")
            bot.stop()
    memory.close()


def make_contacts(scale: Scale, state: Path) -> None:
    """Write the contacts of an earlier life."""
    memory = BotMemory(SqliteStateStore(state), BOT.public_key, now_ms())
    contacts = Contacts(memory)
    for number in range(scale.contacts):
        contacts.put(key_of(f"contact {number}").public_key, Contact(ContactState.CONTACT, 1))
    memory.close()


async def watch(what: str, seconds: float) -> None:
    """Print what the process takes for some seconds."""
    cpu, began = time.process_time(), time.monotonic()
    await anyio.sleep(seconds)
    share = (time.process_time() - cpu) / (time.monotonic() - began)
    print(f"{what}: {100 * share:.2f} % of a core, {resident_bytes() / 2**20:.0f} MB resident")


async def describe(client: WakuClient, scale: Scale, number: int) -> None:
    """Publish a community that lists the bot."""
    key = scale.owner(number)
    users = [BOT, *(key_of(f"user {n}") for n in range(MEMBERS))]
    description = CommunityDescription(
        clock=now_ms(),
        members={user.public_key.hex: CommunityMember() for user in users},
        permissions=CommunityPermissions(access=Access.AUTO_ACCEPT),
        id=Community(key.public_key).id,
    )
    for uuid in scale.uuids():
        description = with_channel(uuid, uuid)(description)
    topic = Community(key.public_key).description_topic
    for message in Sealer(key).seal(description, topic, now_ms()).messages:
        await client.relay_publish(str(DEFAULT_SHARD), message)


async def talk(client: WakuClient, scale: Scale) -> None:
    """Write a message a second, in one community after the other. The bot's process writes them, so
    its figure is a little too high."""
    sealer, number = Sealer(USER), 0
    while True:
        community = Community(scale.owner(number % scale.communities).public_key)
        at_ms = now_ms()
        message = ChatMessage(
            clock=at_ms,
            timestamp=at_ms,
            text=f"message {number}",
            chat_id=community.channel_id(scale.uuids()[number % scale.channels]),
            message_type=MessageType.COMMUNITY_CHAT,
        )
        for sealed in sealer.seal(message, community.universal_topic, at_ms).messages:
            await client.relay_publish(str(DEFAULT_SHARD), sealed)
        number += 1
        await anyio.sleep(1)


def now_ms() -> int:
    """The time."""
    return time.time_ns() // 1_000_000


async def run_node() -> None:
    """The node's process: it prints its address and serves until it is ended."""
    options = NodeOptions(
        cluster_id=16, shards=(32, 64), static_sharding=True, cache_capacity=10_000
    )
    await serve(options, port=0, started=lambda url: print(url, flush=True))


def main(arguments: Sequence[str] | None = None) -> None:
    """Start a node, and measure a bot."""
    parser = argparse.ArgumentParser(prog="python -m bench.idle", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of each measurement")
    parser.add_argument("--communities", type=int, default=COMMUNITIES)
    parser.add_argument("--contacts", type=int, default=CONTACTS)
    parser.add_argument("--node", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.node:
        anyio.run(run_node)
        return
    command = [sys.executable, "-m", "bench.idle", "--node"]
    scale = Scale(given.communities, contacts=given.contacts)
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node,
        tempfile.TemporaryDirectory() as folder,
    ):
        assert node.stdout is not None
        url = node.stdout.readline().strip()
        try:
            anyio.run(measure, scale, given.seconds, url, Path(folder) / "bot.db")
        finally:
            node.terminate()


if __name__ == "__main__":
    main()
