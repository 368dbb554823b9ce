"""js-waku's channels and ours, in containers around one go-waku node: one message at a time."""

from __future__ import annotations

import sys
from typing import Final

from interop.go_build import GoUnavailable
from interop.waku.bench import Bench
from interop.waku.benchmark import Plan, Row, run
from interop.waku.engine import EngineUnavailable
from interop.waku.flow import Latency

ROWS: Final[dict[str, Row]] = {
    "js_p50_ms": ("js", "js"),
    "p50_beside_js_ms": ("ours (libp2p)", "ours (libp2p)"),
}
ROUNDS: Final = 2
PLAN: Final = Plan(alone=60, together=100)


def latencies() -> dict[str, float]:
    """The median ms from `send` to the application, of js-waku and of ours beside it.

    Nothing where there are no containers.
    """
    try:
        with Bench.open() as bench, bench.network("store") as network:
            results = run(network, PLAN, ROUNDS, tuple(ROWS.values()))
    except (EngineUnavailable, GoUnavailable) as reason:
        print(f"js-waku is not measured: {reason}", file=sys.stderr)
        return {}
    return {
        name: round(Latency.of(results[row].alone.latencies_ms).p50, 3)
        for name, row in ROWS.items()
    }
