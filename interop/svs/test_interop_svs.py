"""Three nodes of ndnd and three of ours in one group: a partition, a re-bootstrap, both kinds of
signatures and of names."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from reliable_channel_svs import NamingScheme
from reliable_channel_svs.ndn import ForwarderLost, PacketRefused

from ..needed import PATIENCE_S
from ..node_install import NodeUnavailable, installed
from .forwarder import forwarding
from .gate import Gate
from .group import GROUP, Group
from .members import Member, lines, running

OURS = ("/py/1", "/py/2", "/py/3")
THEIRS = ("/go/1", "/go/2", "/go/3")
PUBLICATIONS = int(os.environ.get("SVS_PUBLICATIONS", "1000"))
"""In each of the two tests before the partition, of all members together."""


@asynccontextmanager
async def running_group(
    program: Path, naming: NamingScheme, is_signed: bool
) -> AsyncIterator[tuple[Group, Gate]]:
    async with forwarding(program) as between, anyio.create_task_group() as tasks:
        group = Group(program, between, naming, is_signed, tasks)
        await group.join(*OURS, *THEIRS)
        yield group, between
        await group.leave(*group.members)


async def _scenario(program: Path, naming: NamingScheme, is_signed: bool) -> None:
    async with running_group(program, naming, is_signed) as (group, between):
        started = time.monotonic()
        await group.publish(-(-PUBLICATIONS // 6))
        await group.converged()
        took = time.monotonic() - started
        print(f"{naming}: {len(group.published)} publications at all six in {took:.1f} s")

        between.close()  # ours lose the forwarder, and with it each other
        await group.publish(5)
        await group.converged(*THEIRS)
        lost = 0
        with anyio.fail_after(PATIENCE_S):
            while not lost:
                lost += sum(isinstance(event, ForwarderLost) for event in group.our_events())
                await anyio.sleep(0.02)
        between.open()
        await group.converged()
        group.check_once_and_in_order()

        # One after the other: SvsALO fetches nothing of a node's new life while there is too much
        # of an old one that nobody has.
        for name in ("/go/2", "/py/2"):
            await group.leave(name)
            again = len(group.published)
            await group.join(name)
            await group.publish(5)
            await group.converged(since=again)
        # What those published who never left can all be had, by those who came back too.
        await group.converged("/py/1", "/py/2", "/py/3", "/go/1", "/go/3")
        group.check_once_and_in_order()
        assert not [event for event in group.our_events() if isinstance(event, PacketRefused)]


def test_spec_names_and_digests(program: Path) -> None:
    anyio.run(_scenario, program, "spec", False)


def test_svs_alo_names_and_ed25519(program: Path) -> None:
    anyio.run(_scenario, program, "svs-alo", True)


@pytest.mark.parametrize("naming", ["spec", "svs-alo"])
def test_who_has_not_the_groups_key_is_not_heard(program: Path, naming: NamingScheme) -> None:
    async def scenario() -> None:
        async with running_group(program, naming, is_signed=True) as (group, _):
            await group.join("/mallory")
            await group.publish(3)
            await group.converged(*OURS, *THEIRS)
            await group.leave("/mallory")
            assert any(isinstance(event, PacketRefused) for event in group.our_events())
            for member in group.members.values():
                assert not [place for place, _ in member.received if place[0] == "/mallory"]

    anyio.run(scenario)


def test_ndnts_takes_part(program: Path) -> None:
    try:
        script = installed(Path(__file__).parent / "ndnts")
    except NodeUnavailable as reason:
        pytest.skip(str(reason))  # in CI too: not every mirror of npm has it

    async def scenario() -> None:
        async with running_group(program, "spec", False) as (group, _):
            command = [str(script), str(group.between.target), GROUP, "/js", "20"]
            async with running(Path("node"), *command) as process:
                heard: list[str] = []
                with anyio.move_on_after(PATIENCE_S):
                    async for line in lines(process):
                        if line["event"] == "ready":
                            await group.publish(10)
                        elif line["event"] == "publication":
                            heard.append(bytes.fromhex(line["content"]).decode())
                        # Of ndnd it learns from our vectors: it refuses those of ndnd v1.5.3.
                        if len(heard) == 60 and all(map(_has_all_of_js, group.members.values())):
                            break
            assert sorted(heard) == sorted(content.decode() for _, content in group.published)
            assert all(map(_has_all_of_js, group.members.values()))

    anyio.run(scenario)


def _has_all_of_js(member: Member) -> bool:
    said = {content for _, content in member.received}
    return said >= {b"js %d" % number for number in range(1, 21)}
