"""A group of ours and of ndnd's nodes whose members come, go, publish and are compared."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup, TaskStatus

from reliable_channel_svs import (
    DigestSigner,
    DigestTrust,
    Ed25519Signer,
    KeyTrust,
    Name,
    NamingScheme,
    SvsOptions,
)
from reliable_channel_svs.ndn import NodeEvent, NodeOptions, SvsNode

from ..needed import PATIENCE_S
from .gate import Gate
from .members import Member, OurMember, go_member, our_member

GROUP = "/room/one"
PERIODIC_MS = 2_000
"""Instead of 30 s: what was lost in a partition is learned within one of these."""
SEED = bytes(range(32))
KEY_NAME = "/group/KEY/%01"


@dataclass
class Group:
    """What the members agree on, their names, and their publications."""

    program: Path
    between: Gate
    """Our nodes reach the forwarder through it."""
    naming: NamingScheme
    is_signed: bool
    tasks: TaskGroup
    members: dict[str, Member] = field(default_factory=dict)
    published: list[tuple[str, bytes]] = field(default_factory=list)
    """Node name and content."""
    _ends: dict[str, tuple[anyio.Event, anyio.Event]] = field(default_factory=dict)

    # -- members -----------------------------------------------------------------------------------

    async def join(self, *names: str) -> None:
        """Let nodes take part: `/go/…` of ndnd, others of ours."""
        for name in names:
            await self.tasks.start(self._life, name)

    async def leave(self, *names: str) -> None:
        """End them, with all that they know."""
        for name in names:
            leave, left = self._ends.pop(name)
            leave.set()
            await left.wait()

    async def _life(self, name: str, *, task_status: TaskStatus[None]) -> None:
        # Each in a task of its own, so that members can leave in any order.
        leave, left = self._ends[name] = anyio.Event(), anyio.Event()
        async with self._make(name) as self.members[name]:
            task_status.started()
            await leave.wait()
        del self.members[name]
        left.set()

    def _make(self, name: str) -> AbstractAsyncContextManager[Member]:
        if not name.startswith("/go"):
            return our_member(self._our_node(name))
        signed = ["-ed25519", SEED.hex(), "-keyname", KEY_NAME] if self.is_signed else []
        naming = "alo" if self.naming == "svs-alo" else "spec"
        arguments = ["-periodic", f"{PERIODIC_MS}ms", "-naming", naming, *signed]
        return go_member(self.program, f"unix://{self.between.target}", GROUP, name, arguments)

    def _our_node(self, name: str) -> SvsNode:
        group_key = Ed25519Signer(SEED, Name.parse(KEY_NAME))
        trust = KeyTrust({Name.parse(KEY_NAME): group_key.public_key})
        # One who has not the key can only pretend to.
        seed = bytes(32) if name.startswith("/mallory") else SEED
        key = Ed25519Signer(seed, Name.parse(KEY_NAME))
        return SvsNode(
            f"unix://{self.between.path}",
            group=GROUP,
            name=name,
            signer=key if self.is_signed else DigestSigner(),
            trust=trust if self.is_signed else DigestTrust(),
            options=NodeOptions(
                svs=SvsOptions(periodic_timeout_ms=PERIODIC_MS), naming=self.naming
            ),
        )

    def our_events(self) -> list[NodeEvent]:
        """Events of our nodes besides publications."""
        ours = (member for member in self.members.values() if isinstance(member, OurMember))
        return [event for member in ours for event in member.events]

    # -- publications ------------------------------------------------------------------------------

    async def publish(self, count: int) -> None:
        """Every member publishes so many, all at the same time."""

        async def one(member: Member) -> None:
            for _ in range(count):
                content = f"{member.name} {len(self.published)}".encode()
                self.published.append((member.name, content))
                await member.publish(content)

        async with anyio.create_task_group() as tasks:
            for member in self.members.values():
                tasks.start_soon(one, member)

    async def converged(self, *names: str, since: int = 0) -> None:
        """Wait until these members (or all) have all that these others published.

        Raises:
            AssertionError: a member still lacks a publication.
        """
        members = [self.members[name] for name in names or self.members]
        with anyio.move_on_after(PATIENCE_S):
            while any(  # noqa: ASYNC110 - a test may poll
                self._missing(member, members, since) for member in members
            ):
                await anyio.sleep(0.05)
        for member in members:
            missing = sorted(self._missing(member, members, since))
            assert not missing, f"{member.name} lacks {len(missing)}, such as {missing[:3]}"

    def _missing(self, member: Member, of: list[Member], since: int) -> set[bytes]:
        others = {other.name for other in of} - {member.name}
        wanted = {content for name, content in self.published[since:] if name in others}
        return wanted - {content for _, content in member.received}

    def check_once_and_in_order(self) -> None:
        """Each publication came once; to ours, and with SvsALO to theirs, in order."""
        for member in self.members.values():
            places = [place for place, _ in member.received]
            assert len(set(places)) == len(places), f"{member.name} has something twice"
            if isinstance(member, OurMember) or self.naming == "svs-alo":
                for stream in {place[:2] for place in places}:
                    seqs = [place[2] for place in places if place[:2] == stream]
                    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
