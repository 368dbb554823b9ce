"""`python -m interop.waku.benchmark`: our peer and js-waku's across the wire, side by side on one
node.

Each round opens a fresh pair of peers for each row, on a separate content topic, and plays the
rows by turns, so that other work on the machine falls on all of them alike.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random
from typing import Final, Literal

from bench.machine import this_machine

from ..go_build import GoUnavailable
from .bench import Bench, BenchNetwork
from .container import Container, Died
from .engine import EngineUnavailable
from .flow import Flow, Latency, flow
from .peers import Peer
from .report import joined, write_between

BEGIN: Final = "<!-- benchmark: begin (make bench-interop PAGE=docs/interop.md) -->"
END: Final = "<!-- benchmark: end -->"

Kind = Literal["ours", "ours (light)", "ours (libp2p)", "js"]
"""Ours by relay, by light push and filter, both through a gateway, by our libp2p client; and
js-waku, which is a client, too."""
Row = tuple[Kind, Kind]
ROWS: Final[tuple[Row, ...]] = (
    *(("ours", "ours"), ("js", "js"), ("ours", "js"), ("js", "ours")),
    *(("ours (light)", "ours (light)"), ("ours (light)", "js"), ("js", "ours (light)")),
    ("ours (libp2p)", "ours (libp2p)"),
)
"""Sender and receiver."""
LONGEST_PAUSE_S: Final = 0.2
"""Before a message alone, at random: sent upon an arrival, each would wait for a whole interval of
the receiver's polling."""
NUMBER_SIZE: Final = 4
"""Bytes at the begin of each payload."""
MAX_ROUNDS: Final = 10
"""The network has addresses for these."""
CONTAINERS: Final = ("sender", "sender's gateway", "receiver", "receiver's gateway", "node")
"""js-waku needs no gateway: it is a Waku node itself."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What each row sends in a round."""

    warm_up: int = 20
    alone: int = 60
    """Messages of which one at a time is under way."""
    together: int = 300
    window: int = 20
    """How many of these are under way at a time."""
    size: int = 256
    """Bytes of a payload."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    """A row of a round, or of all of them."""

    alone: Flow
    together: Flow

    @classmethod
    def of_all(cls, results: "Sequence[Result]") -> "Result":
        """Several as one."""
        return cls(
            Flow.of_all([result.alone for result in results]),
            Flow.of_all([result.together for result in results]),
        )


def play(network: BenchNetwork, row: Row, number: int, plan: Plan) -> Result:
    """Open a pair, send what is planned from the one to the other, and close it.

    Args:
        number: Unlike that of any other pair of the network.

    Raises:
        TimeoutError: a message did not arrive.
    """
    topic = f"/reliable-channel/1/benchmark-{number}/proto"
    random = Random(f"{plan.seed}/{number}")
    payloads = _payloads(plan, random)
    pauses_s = [random.uniform(0, LONGEST_PAUSE_S) for _ in range(plan.alone)]
    with ExitStack() as open_peers:

        def opened(kind: Kind, role: str) -> Peer:
            name = f"{role}-{number}"
            peer: Peer
            match kind:
                case "js":
                    peer = network.js(name, topic=topic)
                case "ours":
                    peer = network.ours(name, service="relay", topic=topic)
                case "ours (light)":
                    peer = network.ours(name, service="light", topic=topic)
                case "ours (libp2p)":
                    peer = network.ours(name, service="native", topic=topic)
            for container in {peer, peer.link}:
                open_peers.callback(container.remove)
            return peer

        receiver, sender = opened(row[1], "receiver"), opened(row[0], "sender")
        containers = _named(sender, receiver, network.node)
        flow(sender, receiver, payloads[: plan.warm_up], window=1, containers={})
        alone = payloads[plan.warm_up :][: plan.alone]
        together = payloads[plan.warm_up + plan.alone :]
        return Result(
            flow(sender, receiver, alone, window=1, containers=containers, pauses_s=pauses_s),
            flow(sender, receiver, together, window=plan.window, containers=containers),
        )


def run(
    network: BenchNetwork, plan: Plan, rounds: int, rows: Sequence[Row] = ROWS
) -> dict[Row, Result]:
    """Play rows by turns, and say how each goes. Ctrl-C ends it with the rows played so far."""
    results: dict[Row, list[Result]] = {row: [] for row in rows}
    turns = list(product(range(1, rounds + 1), rows))
    with suppress(KeyboardInterrupt):  # the figures are of what was done by then
        for number, (round_number, row) in enumerate(turns):
            print(f"round {round_number} of {rounds}, {_title(row)}: ", end="", flush=True)
            result = play(network, row, number, plan)
            results[row].append(result)
            print(
                f"{result.together.per_s:.0f} messages a second; one at a time "
                f"p50 {Latency.of(result.alone.latencies_ms).p50:.0f} ms",
                flush=True,
            )
    return {row: Result.of_all(each) for row, each in results.items() if each}


def table(results: Mapping[Row, Result], plan: Plan) -> Iterator[str]:
    """The figures, for a page and for people."""
    at_once = f"{plan.window} at a time"
    times = [f"p50 / p95 / p99 ms, {how}" for how in (at_once, "one at a time")]
    yield joined(["from → to", "messages", f"a second, {at_once}", *times])
    yield "|---|--:|--:|--:|--:|"
    for row, result in results.items():
        messages = result.alone.messages + result.together.messages
        rate = f"{result.together.per_s:.0f}"
        times = [_latency(result.together), _latency(result.alone)]
        yield joined([_title(row), f"{messages:,}", rate, *times])
    yield ""
    yield joined([f"CPU s a 1,000 messages, {at_once}", *CONTAINERS, "all"])
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for row, result in results.items():
        used = result.together.cpu_s_per_1000
        each = [f"{used[name]:.1f}" if name in used else "" for name in CONTAINERS]
        yield joined([_title(row), *each, f"{sum(used.values()):.1f}"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark as the command line asks; 0 where all messages of all rows arrived."""
    plan, rounds, page = _asked(arguments)
    conditions = _conditions(plan, rounds)
    print(conditions, flush=True)
    try:
        with Bench.open() as bench, bench.network("store") as network:
            results = run(network, plan, rounds)
    except (EngineUnavailable, GoUnavailable) as reason:
        print(f"there is no benchmark: {reason}", file=sys.stderr)
        return 1
    except (Died, TimeoutError) as failure:
        print(f"\nthe benchmark failed: {failure}", file=sys.stderr)
        return 1
    ended = f"{conditions}, {os.getloadavg()[0]:.1f} after it."
    lines = [ended, "", *table(results, plan)]
    print("", *lines, sep="\n")
    if page is not None:
        write_between(page, BEGIN, END, lines)
    return 0


def _asked(arguments: Sequence[str] | None) -> tuple[Plan, int, Path | None]:
    """What to send, in how many rounds, and the page to write."""
    plan = Plan()
    parser = argparse.ArgumentParser(prog="python -m interop.waku.benchmark", description=__doc__)
    parser.add_argument("--alone", type=int, default=plan.alone, help="messages one at a time")
    parser.add_argument("--together", type=int, default=plan.together, help="messages in a window")
    parser.add_argument("--window", type=int, default=plan.window, help="messages under way")
    parser.add_argument("--size", type=int, default=plan.size, help="bytes of a payload")
    parser.add_argument("--seed", type=int, default=plan.seed, help="of payloads and pauses")
    parser.add_argument("--rounds", type=int, default=3, help=f"of all rows, to {MAX_ROUNDS}")
    parser.add_argument("--page", type=Path, help="also write the tables into this page")
    options = vars(parser.parse_args(arguments))
    rounds, page = options.pop("rounds"), options.pop("page")
    if options["size"] < NUMBER_SIZE:
        parser.error(f"--size is at least {NUMBER_SIZE}: payloads are numbered")
    if min(options["alone"], options["together"]) < 2 or options["window"] < 1:
        parser.error("--alone and --together are at least 2, --window at least 1")
    if not 1 <= rounds <= MAX_ROUNDS:
        parser.error(f"--rounds is 1 to {MAX_ROUNDS}")
    return Plan(**options), rounds, page


def _payloads(plan: Plan, random: Random) -> list[bytes]:
    """As many as a round needs, each begun with its number, so that no two are equal."""
    numbers = range(plan.warm_up + plan.alone + plan.together)
    return [
        number.to_bytes(NUMBER_SIZE) + random.randbytes(plan.size - NUMBER_SIZE)
        for number in numbers
    ]


def _named(sender: Peer, receiver: Peer, node: Container) -> dict[str, Container]:
    every = zip(CONTAINERS, (sender, sender.link, receiver, receiver.link, node), strict=True)
    own = {"sender's gateway": sender, "receiver's gateway": receiver}
    return {name: container for name, container in every if own.get(name) is not container}


def _title(row: Row) -> str:
    return " → ".join(row)


def _latency(measured: Flow) -> str:
    latency = Latency.of(measured.latencies_ms)
    return f"{latency.p50:.0f} / {latency.p95:.0f} / {latency.p99:.0f}"


def _conditions(plan: Plan, rounds: int) -> str:
    machine = this_machine(None)
    return (
        f"{datetime.now(UTC).date()}, {machine.cpus} cores ({machine.cpu}), {machine.python}; "
        f"up to {rounds} rounds of {plan.alone} + {plan.together} messages a row, "
        f"{plan.size} B each, seed {plan.seed}; "
        f"load average {machine.load_average:.1f} before the run"
    )


if __name__ == "__main__":
    sys.exit(main())
