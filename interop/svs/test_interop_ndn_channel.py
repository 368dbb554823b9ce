"""Channels on NDN through ndnd's forwarder: the suite of transports, and a group in which the
forwarder goes away and a participant starts again."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import ClassVar

import anyio
import pytest

from reliable_channel import MessageReceived, ReliableChannel
from reliable_channel.options import RepairOptions
from reliable_channel.testing.transport_suite import MakeTransport, TransportSuite
from reliable_channel_svs import Ed25519Signer, Name, plugin
from reliable_channel_svs.ndn import NdnTransport

from ..needed import PATIENCE_S
from .forwarder import forwarding
from .gate import Gate

EACH = 10
"""Messages of each participant in each of the three parts of the story."""


class TestNdnd(TransportSuite):
    has_store = False
    naming: ClassVar = "spec"
    _program: Path

    @pytest.fixture(autouse=True)
    def _built(self, program: Path) -> None:
        self._program = program

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        numbers = count()
        async with forwarding(self._program) as between:
            url = f"ndn:///room?forwarder=unix://{between.target}&naming={self.naming}"
            yield lambda settings: NdnTransport(url, settings, f"sender {next(numbers)}")


class TestNdndAlo(TestNdnd):
    naming = "svs-alo"


@dataclass
class Participant:
    """What one person saw, over all lives of its channel."""

    name: str
    heard: list[bytes] = field(default_factory=list)
    """Delivered and sent, in the order in which it knew of them."""


class Story:
    """Three people talk; each notes what was known when a message was sent."""

    def __init__(self) -> None:
        self.people = {name: Participant(name) for name in ("alice", "bob", "carol")}
        self.causes: dict[bytes, frozenset[bytes]] = {}

    async def talk(self, channel: ReliableChannel, part: str) -> None:
        """Send, with a breath in between, so that messages refer to each other's."""
        heard = self.people[channel.sender_id].heard
        for number in range(EACH):
            content = f"{part} {number} of {channel.sender_id} ".encode().ljust(200, b".")
            # A long one now and then, which is cut into several publications.
            content *= 60 if number % 10 == 5 else 1
            self.causes[content] = frozenset(heard)
            heard.append(content)
            await channel.send(content)
            await anyio.sleep(0.02)

    async def listen(self, channel: ReliableChannel) -> None:
        async for event in channel.events():
            if isinstance(event, MessageReceived):
                self.people[channel.sender_id].heard.append(event.content)

    async def all_heard(self, count: int) -> None:
        """Wait until all know this many messages."""
        with anyio.move_on_after(PATIENCE_S):
            while any(  # noqa: ASYNC110 - a test may poll
                len(person.heard) < count for person in self.people.values()
            ):
                await anyio.sleep(0.05)
        assert {name: len(person.heard) for name, person in self.people.items()} == dict.fromkeys(
            self.people, count
        )

    def check_causal_order(self) -> None:
        """Each message once, after all that its sender knew."""
        for person in self.people.values():
            place = {content: number for number, content in enumerate(person.heard)}
            twice = [c[:30] for c, number in Counter(person.heard).items() if number > 1]
            assert not twice, f"{person.name} emitted messages twice"
            for content, causes in self.causes.items():
                late = [cause for cause in causes if place[cause] > place[content]]
                assert not late, f"{person.name}: {content[:30]!r} before {late[0][:30]!r}"


@asynccontextmanager
async def speaking(story: Story, url: str, name: str, state: str) -> AsyncIterator[ReliableChannel]:
    channel = ReliableChannel(
        url,
        channel_id="general",
        sender_id=name,
        state=state,
        plugins=[plugin],
        sync_min_interval_ms=2_000,
        retry_interval_ms=10_000,
        repair=RepairOptions(t_min_ms=100, t_max_ms=500),
    )
    async with channel, anyio.create_task_group() as tasks:
        tasks.start_soon(story.listen, channel)
        yield channel
        tasks.cancel_scope.cancel()


def keys_in(directory: Path, *names: str) -> None:
    """A key file for each, and one with what all of them believe."""
    public = []
    for number, name in enumerate(names):
        seed = bytes([number]) * 32
        key_name = f"/room/KEY/{name}"
        (directory / f"{name}.key").write_text(f"{key_name} {seed.hex()}\n")
        key = Ed25519Signer(seed, Name.parse(key_name)).public_key
        public.append(f"{key_name} {key.hex()}\n")
    (directory / "trusted.keys").write_text("".join(public))


@pytest.mark.parametrize("is_signed", [False, True], ids=["digest", "ed25519"])
def test_three_channels_with_a_partition_and_a_restart(
    program: Path, tmp_path: Path, is_signed: bool
) -> None:
    keys_in(tmp_path, "alice", "bob", "carol")

    async def scenario() -> None:
        story = Story()

        def join(between: Gate, name: str) -> AbstractAsyncContextManager[ReliableChannel]:
            # Alice is at the forwarder itself; the way of the others can be cut.
            way = between.target if name == "alice" else between.path
            url = f"ndn:///room?forwarder=unix://{way}"
            if is_signed:
                url += f"&key={tmp_path}/{name}.key&trust={tmp_path}/trusted.keys"
            return speaking(story, url, name, f"sqlite:///{tmp_path}/{name}.db")

        async def all_talk(part: str, *channels: ReliableChannel) -> None:
            async with anyio.create_task_group() as tasks:
                for channel in channels:
                    tasks.start_soon(story.talk, channel, part)

        async with (
            forwarding(program) as between,
            join(between, "alice") as alice,
            join(between, "bob") as bob,
        ):
            async with join(between, "carol") as carol:
                await all_talk("together", alice, bob, carol)
                await story.all_heard(3 * EACH)
                between.close()
                await all_talk("apart", alice, bob, carol)
                assert len(story.people["alice"].heard) == 4 * EACH
                between.open()
                await story.all_heard(6 * EACH)
            await all_talk("without carol", alice, bob)
            async with join(between, "carol") as carol:
                await all_talk("again", alice, bob, carol)
                await story.all_heard(11 * EACH)
                story.check_causal_order()
                assert len({channel.log_digest() for channel in (alice, bob, carol)}) == 1

    anyio.run(scenario)
