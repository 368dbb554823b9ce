"""A group under load whose processes are killed at random moments, and the proof that it lost
nothing."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import anyio

from .checker import broken_promises, read
from .processes import QUICK, SELF_TUNED, Killable, Node, Participant

NAMES: Final = ("alice", "bob", "carol")
NODE_TURN: Final = 7
"""Of so many kills, one is the node's."""
SETTLE_S: Final = 1_500
"""A guard against hangs; how long a group takes depends on the machine."""
MESSAGES_A_KILL: Final = 10
"""Asked for between two kills, at least: on a busy machine a kill has its load, too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    kills: int
    node_kills: int
    accepted: int
    redelivered: int
    settled_s: float
    broken: list[str]


async def run(
    directory: Path,
    *,
    kills: int,
    seed: int,
    self_tuned: bool = False,
    tell: Callable[[str], None] = print,
) -> Outcome:
    """Send, kill and start again, then let the group settle and read the journals. With
    `self_tuned` participants have `preset="auto"`."""
    options = SELF_TUNED if self_tuned else QUICK
    tell(f"seed {seed}")
    random = Random(seed)
    async with anyio.create_task_group() as tasks:
        node = Node(directory / "store.db", _free_port(), tasks)
        group = [Participant(name, directory, node.address, tasks, options) for name in NAMES]
        with _all_killed([node, *group]):
            await node.start()
            await node.listens.wait()
            for participant in group:
                await participant.start()
            async with anyio.create_task_group() as load:
                load.start_soon(_talk, group, Random(seed + 1))
                node_kills = await _kill(node, group, kills, random, tell)
                load.cancel_scope.cancel()
            began = anyio.current_time()
            logs = await _settle(group)
            settled_s = anyio.current_time() - began
        tasks.cancel_scope.cancel()
    stories = [read(each.name, each.journal) for each in group]
    broken = [error for each in group for error in each.errors] + broken_promises(stories, logs)
    broken += [
        f"{each.name}: {message_id} was not confirmed, and not emitted again"
        for each in group
        for message_id in sorted(each.owed)
    ]
    return Outcome(
        kills,
        node_kills,
        len(next(iter(logs.values()))),
        sum(told.redelivered for story in stories for life in story.lives for told in life),
        settled_s,
        broken,
    )


async def _talk(group: list[Participant], random: Random) -> None:
    while True:
        for _ in range(random.choice((1, 1, 1, 5))):
            await random.choice(group).send()
        await random.choice(group).confirm(random.choice((1, 10, 1_000)))
        await anyio.sleep(random.uniform(0, 0.3))  # some 13 messages a second


async def _kill(
    node: Node, group: list[Participant], kills: int, random: Random, tell: Callable[[str], None]
) -> int:
    """Kill one process after the other, and last one that has something to tell again; return how
    often it was the node's turn."""
    node_kills = 0
    for number in range(1, kills + 1):
        # From the first moments of a life on: opening a state is a moment like any other.
        await anyio.sleep(random.expovariate(1.0))
        while sum(each.asked for each in group) < number * MESSAGES_A_KILL:  # noqa: ASYNC110
            await anyio.sleep(0.05)
        victim = node if number % NODE_TURN == 0 else random.choice(group)
        if number == kills:
            victim = await _one_that_owes(group)
        node_kills += victim is node
        await victim.kill()
        await anyio.sleep(random.choice((0, 0.3, 1.5)))
        await victim.start()
        if number % 10 == 0:
            tell(f"{number} of {kills} killed")
    return node_kills


async def _one_that_owes(group: list[Participant]) -> Participant:
    """Somebody who was told a message, and not asked to confirm it, at this very moment: on a busy
    machine all the others may die before they are told anything."""
    with anyio.fail_after(SETTLE_S):
        while True:
            for participant in group:
                if participant.handled:
                    return participant
            await anyio.sleep(0.05)


async def _settle(group: list[Participant]) -> dict[str, list[str]]:
    """Wait until all that was asked for is accepted, all that is owed was emitted again and all
    logs hold as much; return their ids, whether or not the time was enough."""
    with anyio.move_on_after(SETTLE_S):
        while not await _is_settled(group):  # noqa: ASYNC110 - told by other processes
            await anyio.sleep(1)
    for participant in group:
        await participant.ask_log()
    with anyio.fail_after(SETTLE_S):
        while any(each.log is None for each in group):  # noqa: ASYNC110
            await anyio.sleep(0.2)
    await anyio.sleep(1)  # what was told last is on its way to the journals
    return {each.name: each.log or [] for each in group}


async def _is_settled(group: list[Participant]) -> bool:
    for participant in group:
        await participant.confirm(len(participant.handled))
        await participant.ask_log_length()
    with anyio.move_on_after(10):
        while any(each.log_length is None for each in group):  # noqa: ASYNC110
            await anyio.sleep(0.2)
    lengths = {each.log_length for each in group}
    accepted = sum(len(each.accepted) for each in group)
    waits = any(each.unknown or each.owed for each in group)
    return not waits and lengths == {accepted}


@contextmanager
def _all_killed(processes: list[Killable]) -> Iterator[None]:
    """Leave no process behind, however this ends."""
    try:
        yield
    finally:
        for each in processes:
            if each.process is not None and each.is_alive:
                each.process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
