"""`make bench`: this core and js-waku's side by side, in tables and in JSON."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from bench import repair
from bench.js_waku import JsWaku
from bench.machine import this_machine
from bench.memory import compare_memory
from bench.node_runtime import NodeUnavailable, ready_node
from bench.ours import Ours
from bench.primitives import compare_primitives
from bench.report import LATEST, Report, print_machine, print_tables, write_json
from bench.session import CAUSAL_HISTORIES, FULL, QUICK, Plan, measure


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the benchmark as the command line asks; 0 where it ran to its end."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only a history of 10,000 messages")
    parser.add_argument("--no-js-waku", action="store_true", help="this core and the floor alone")
    parser.add_argument("--repair", action="store_true", help="the table of repair policies alone")
    parser.add_argument("--output", type=Path, default=LATEST, help="where the JSON goes")
    options = parser.parse_args(None if arguments is None else list(arguments))

    if options.repair:
        repair.print_table()
        return 0
    console = Console()
    with ExitStack() as stack:
        node_version, js_waku = None, None
        if not options.no_js_waku:
            try:
                console.print("looking for Node and @waku/sds 0.0.8; what is missing is installed")
                node = ready_node()
                node_version, js_waku = node.version, stack.enter_context(JsWaku(node))
            except NodeUnavailable as error:
                console.print(f"[yellow]js-waku is not measured: {error}[/]")
                if os.environ.get("CI") == "true":
                    return 1
        report = Report(this_machine(node_version), quick=options.quick)
        print_machine(report.machine, console)
        began = time.monotonic()
        _run(report, QUICK if options.quick else FULL, js_waku, console)
        report.seconds = time.monotonic() - began
    print_tables(report, console)
    write_json(report, options.output)
    console.print(f"{report.seconds:.0f} s; written to {options.output}", highlight=False)
    return 0


def _run(report: Report, plans: Iterable[Plan], js_waku: JsWaku | None, console: Console) -> None:
    """Measure and print it, line by line: a livelier display would cost CPU time itself."""
    ours = Ours()
    for plan in plans:
        for causal_history in CAUSAL_HISTORIES:
            console.print(
                f"history {plan.history:,}, causal history {causal_history}: building",
                highlight=False,
            )
            for row in measure(plan, causal_history, ours, js_waku):
                report.rows.append(row)
                theirs = "" if row.js_waku_us is None else f", js-waku {row.js_waku_us:,.0f} µs"
                console.print(
                    f"  {row.operation}, {row.unacknowledged} unacknowledged: "
                    f"ours {row.ours_us:,.1f} µs{theirs}",
                    highlight=False,
                )
    ours.close()
    console.print("encode, decode, bloom filter")
    report.primitives.extend(compare_primitives(js_waku))
    for history in (10_000,) if report.quick else (10_000, 100_000):
        console.print(f"memory of {history:,} messages", highlight=False)
        report.memory.append(compare_memory(history, js_waku))


if __name__ == "__main__":
    sys.exit(main())
