"""Demo in which participants talk over a network that loses messages, until all logs are equal."""

import json
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from secrets import randbelow
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import anyio
import typer
from rich.console import Console
from rich.live import Live

from waku import WakuClient

from ..._program import run
from ..console import fail, leaves, out
from ..exit_codes import ExitCode
from .processes import DemoError, PeerProcess, node_addresses, started
from .view import COLUMNS, NEXT, figures_of, progress, summary

NAMES: Final = ("alice", "bob", "carol", "dave", "erin")
LONER: Final = "erin"
"""Participant that is disconnected for a while."""
WITHOUT_STORE: Final = ("carol", "dave")
"""Participants without a Store, for which other participants repair lost messages."""
CHANNEL: Final = "demo"
ANSWER_TIMEOUT_S: Final = 10
"""Time (s) in which the participants must leave."""
RETRY_S: Final = 5
"""Longest interval (s) of retries and of repair requests, with journals."""
DUE_S: Final = 2 * RETRY_S + 11
"""Time (s) for which participants with journals stay after the last delivery.

`check` judges a message if all were present for a retry, a repair and 10 s more.
"""
MORE_TIME: Final = "more time may help: --timeout"


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    messages: Annotated[
        int, typer.Option(min=1, help="Number of messages that each participant sends.")
    ] = 30,
    loss: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.9,
            help="Share of the messages for each participant that the network drops (0 to 0.9).",
        ),
    ] = 0.3,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the random losses. An equal seed loses equal messages."),
    ] = None,
    nodes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of nodes in a chain over libp2p, which the participants use in turn.",
        ),
    ] = 1,
    journals: Annotated[
        Path | None, typer.Option(help="Directory for the participants' journals.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds without progress until the demo gives up.")
    ] = 120,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print only the outcome, as one JSON line, without progress."),
    ] = False,
) -> None:
    """Start five processes that agree on one log, although the network loses 30 % and one is cut
    off."""
    seed = randbelow(1_000_000) if seed is None else seed
    story = Story(messages, loss, seed, journals, nodes=nodes, as_json=as_json)
    is_over = False
    try:
        is_over = run(story.run, timeout) or False
    except* DemoError as group:
        # Where the node ends, so do the participants: the first reason is the reason.
        fail(f"{next(leaves(group))} (seed {seed})")
        raise typer.Exit(ExitCode.FAILED) from None
    if not is_over:
        raise typer.Exit(ExitCode.TERMINATED)
    if as_json:
        return
    program = sys.argv[0] if os.sep in sys.argv[0] else "reliable-channel"
    program = "reliable-channel" if program.endswith("__main__.py") else os.path.relpath(program)
    out.print(COLUMNS, soft_wrap=True)
    out.print(NEXT.format(program=program, seed=seed), soft_wrap=True)


async def mesh_peers(address: str) -> int:
    """Return the number of peers in a node's relay mesh."""
    async with WakuClient(address) as node:
        return len({peer.peer_id for shard in await node.mesh_peers() for peer in shard.peers})


class Story:
    """Run of the demo, from its start to its result."""

    def __init__(
        self,
        messages: int,
        loss: float,
        seed: int,
        journals: Path | None,
        *,
        nodes: int,
        as_json: bool,
    ) -> None:
        self._nodes = nodes
        self._as_json = as_json
        self._messages = messages
        self._loss = loss
        self._seed = seed
        self._journals = journals
        self._random = Random(seed)
        self._peers: list[PeerProcess] = []
        self._addresses: list[str] = []
        self._mesh_peers: list[int] = []
        """Mesh peers of each node, where there are several."""
        self._said_s = 0.0
        """When the last message was sent."""
        self._headline = "starting a Waku node and five participants"

    async def run(self, timeout_s: float) -> bool:
        """Run the demo and return True if all logs are equal in time.

        Raises:
            DemoError: they are not, and why.
        """
        total = self._messages * len(NAMES)
        began_s, equal_s = anyio.current_time(), 0.0
        async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
            shown = Console(quiet=True) if self._as_json else out
            with Live(console=shown, refresh_per_second=8) as live:
                tasks.start_soon(self._draw, live, total)
                with anyio.move_on_after(timeout_s) as patience:
                    tasks.start_soon(self._extend, patience, timeout_s)
                    await self._start(stack, tasks)
                    await self._talk()
                    await self._wait_until_equal(total)
                    equal_s = anyio.current_time() - self._said_s
                if self._journals is not None and not patience.cancelled_caught:
                    self._headline = f"all logs are equal; {DUE_S} s more for the journals"
                    await anyio.sleep(DUE_S)
                live.update(progress(self._peers, total, self._headline))
            took_s = anyio.current_time() - began_s
            if not self._has_started():
                stuck = f"{self._headline}: no progress for {timeout_s:g} s"
                raise DemoError(f"{stuck}; {MORE_TIME}")
            with anyio.move_on_after(timeout_s) as waiting:
                await self._each(PeerProcess.refresh)
            if waiting.cancelled_caught:
                raise DemoError(f"the participants do not answer within {timeout_s:g} s")
            if self._nodes > 1:
                self._mesh_peers = [await mesh_peers(address) for address in self._addresses]
            self._show(total, took_s, equal_s)
            with anyio.move_on_after(ANSWER_TIMEOUT_S):
                await self._each(PeerProcess.stop)
            tasks.cancel_scope.cancel()
        return True

    async def _start(self, stack: AsyncExitStack, tasks: anyio.abc.TaskGroup) -> None:
        addresses = self._addresses = await self._start_nodes(stack)
        if self._journals is not None:
            self._journals.mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(NAMES):
            process = await stack.enter_async_context(
                started("peer", *self._flags(addresses[number % len(addresses)], number, name))
            )
            peer = PeerProcess(name, process)
            tasks.start_soon(peer.listen)
            self._peers.append(peer)
        for peer in self._peers:
            await peer.ready.wait()

    async def _start_nodes(self, stack: AsyncExitStack) -> list[str]:
        """Start the nodes, each a relay peer of the one before; return their REST addresses."""
        found: list[str] = []
        before: str | None = None
        for _ in range(self._nodes):
            flags = ["--port", "0"]
            if self._nodes > 1:
                folder = stack.enter_context(TemporaryDirectory())
                flags += ["--no-rln", "--listen", "/ip4/127.0.0.1/tcp/0"]
                flags += ["--identity", str(Path(folder, "node.key"))]
            if before is not None:
                flags += ["--relay-peer", before]
            node = await stack.enter_async_context(started("node", *flags))
            address, before = await node_addresses(node)
            found.append(address)
        return found

    def _flags(self, address: str, number: int, name: str) -> list[str]:
        options: dict[str, object] = {
            "node": address,
            "channel-id": CHANNEL,
            "sender-id": name,
            "drop-incoming": self._loss,
            "seed": self._seed + number,
            "preset": "auto",
        }
        if name in WITHOUT_STORE:
            options["retrieval-strategy"] = "sds-r-only"
        if self._journals is not None:
            options["journal"] = self._journals / f"{name}.jsonl"
            options["retry-interval-ms"] = options["repair-t-max-ms"] = RETRY_S * 1_000
            options["repair-t-min-ms"] = 0
        return [part for key, value in options.items() for part in (f"--{key}", str(value))]

    async def _talk(self) -> None:
        share = f"{self._loss:.0%} of what each receives is thrown away"
        loner = next(peer for peer in self._peers if peer.name == LONER)
        for round_number in range(self._messages):
            if round_number == self._messages // 3:
                await self._cut_off(loner, True)
            if round_number == 2 * self._messages // 3:
                await self._cut_off(loner, False)
            away = f", {LONER} is cut off" if loner.cut_off else ""
            self._headline = f"talking: {share}{away}"
            for peer in self._random.sample(self._peers, len(self._peers)):
                await peer.say(f"message {round_number} of {peer.name}")
                self._said_s = anyio.current_time()
                await anyio.sleep(0.03)
        await self._cut_off(loner, False)

    async def _cut_off(self, peer: PeerProcess, cut_off: bool) -> None:
        if peer.cut_off != cut_off:
            peer.cut_off = cut_off
            await peer.command("cut_off", value=cut_off)

    async def _wait_until_equal(self, total: int) -> None:
        self._headline = "everything is said; the participants recover what they miss"
        while True:
            await anyio.sleep(0.2)
            if all(peer.sent + peer.received >= total for peer in self._peers):
                await self._each(PeerProcess.refresh)
                if self._equal(total):
                    self._headline = "all logs are equal"
                    return

    async def _extend(self, patience: anyio.CancelScope, timeout_s: float) -> None:
        """Have `patience` last while anything happens: a busy machine takes longer."""
        before = 0
        while True:
            happened = sum(peer.ready.is_set() + peer.sent + peer.received for peer in self._peers)
            if happened != before:
                before = happened
                patience.deadline = anyio.current_time() + timeout_s
            await anyio.sleep(0.1)

    async def _each(self, do: Callable[[PeerProcess], Coroutine[Any, Any, None]]) -> None:
        """Do something with every participant at once."""
        async with anyio.create_task_group() as tasks:
            for peer in self._peers:
                tasks.start_soon(do, peer)

    def _equal(self, total: int) -> bool:
        return all(peer.log_length == total for peer in self._peers) and (
            len({peer.digest for peer in self._peers}) == 1
        )

    def _has_started(self) -> bool:
        return len(self._peers) == len(NAMES) and all(peer.ready.is_set() for peer in self._peers)

    def _show(self, total: int, took_s: float, equal_s: float) -> None:
        """Print what happened to each participant.

        Raises:
            DemoError: the logs differ.
        """
        if self._as_json:
            self._print_json(total, took_s)
        else:
            out.print()
            out.print(summary(self._peers))
        if not self._equal(total):
            raise DemoError(self._difference(total, took_s))
        if self._as_json:
            return
        if self._mesh_peers:
            *first, last = map(str, self._mesh_peers)
            out.print(
                f"{self._nodes} nodes in a chain over libp2p, with {', '.join(first)} and {last} "
                "peers in their mesh"
            )
        out.print(
            f"[bold green]All {len(NAMES)} logs are equal[/]: {total} messages in one order, "
            f"{equal_s:.1f} s after the last one (seed {self._seed})\n"
            f"  sha256 {self._peers[0].digest}\n"
        )

    def _print_json(self, total: int, took_s: float) -> None:
        outcome = {
            "equal": self._equal(total),
            "messages": total,
            "took_s": round(took_s, 1),
            "seed": self._seed,
            **({"mesh_peers": self._mesh_peers} if self._mesh_peers else {}),
            "participants": [figures_of(peer) for peer in self._peers],
        }
        typer.echo(json.dumps(outcome))

    def _difference(self, total: int, took_s: float) -> str:
        """Why the logs are not equal."""
        if (sent := sum(peer.sent for peer in self._peers)) < total:
            return f"only {sent} of {total} messages were sent after {took_s:.0f} s; {MORE_TIME}"
        worst = min(self._peers, key=lambda peer: peer.log_length)
        if worst.log_length < total:
            has = f"{worst.name} has only {worst.log_length} of {total} messages"
            return f"{has} after {took_s:.0f} s; {MORE_TIME}"
        return f"the logs differ though every participant has {total} messages"

    async def _draw(self, live: Live, total: int) -> None:
        while True:
            live.update(progress(self._peers, total, self._headline))
            await anyio.sleep(0.1)
