"""Memory a message beside its content, in a log filled by receiving with the default options.

Ours is measured in a separate process (`python -m bench.memory 10000`) as the growth of what the
system says is resident, over the number of messages: the bounded caches of a channel are in it, as
the 4 MiB of SDS-R, so that few messages seem to take more than many. js-waku's is heap and buffers
of a history alone, after collection.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.js_waku import JsWaku
from bench.ours import Ours
from bench.report import Comparison
from bench.workload import CONTENT_BYTES, traffic

DEFAULT_CAUSAL_HISTORY: Final = 200
JS_WAKU_MAX_HISTORY: Final = 10_000
"""It keeps each message whole, 0.1 MB: ten times as many would take 10 GB."""
WARM_UP: Final = 500


def compare_memory(history: int, js_waku: JsWaku | None) -> Comparison:
    """Measure both sides with a log of `history` messages."""
    command = [sys.executable, "-m", "bench.memory", str(history)]
    ours = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    theirs = None
    if js_waku is not None and history <= JS_WAKU_MAX_HISTORY:
        theirs = js_waku.memory_bytes(traffic(0, DEFAULT_CAUSAL_HISTORY, history))
    return Comparison(
        f"{history:,} messages",
        "bytes",
        _beside_content(ours, history),
        None if theirs is None else _beside_content(theirs, history),
    )


def our_memory_bytes(history: int) -> int:
    """Bytes by which this process grows while a channel receives `history` messages."""
    # Code, protobuf and the allocator's first arenas are not the messages' cost. The first channel
    # stays, else the second one would live in what it gave back and seem smaller than it is.
    channels = [_fill(WARM_UP)]
    before = resident_bytes()
    channels.append(_fill(history))
    grown = resident_bytes() - before
    channels.clear()
    return grown


def _fill(history: int) -> Ours:
    ours = Ours()
    ours.setup(0, DEFAULT_CAUSAL_HISTORY, ())
    for message in traffic(0, DEFAULT_CAUSAL_HISTORY, history):
        ours.take(message)
    return ours


def _beside_content(total: int, history: int) -> float:
    return total / history - CONTENT_BYTES


def resident_bytes() -> int:
    """What this process has resident after a collection; its peak where the system keeps no other
    figure."""
    gc.collect()
    statm = Path("/proc/self/statm")
    if statm.is_file():
        return int(statm.read_text(encoding="utf-8").split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    print(our_memory_bytes(int(sys.argv[1])))
