"""Frame times of the page of `reliable-channel watch` in a headless Chromium: `make bench-watch`.

A thousand participants and a hundred thousand messages pass through the view's own inputs; the
page is served as the command serves it, and used: the slider over all of time, zooms, a pan, and
new messages while all is in sight. A frame's time is that from one animation frame to the next.
"""

import argparse
import os
import statistics
import time
from collections import deque
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Final

import anyio

from interop.browser.test_interop_browser import browser
from interop.watch.headless import visited
from reliable_channel_watch.model import View
from reliable_channel_watch.values import LAMPS
from reliable_channel_watch.web.server import WatchServer

PARTICIPANTS: Final = 1_000
MESSAGES: Final = 100_000
REFERENCES: Final = 200
"""In a causal history, as by default."""
SIZE_BYTES: Final = 22_000
"""Of a message with these references and the default bloom filter."""
BEHIND: Final = 400
"""So many of the newest messages a sender may not have."""
GAPS: Final = 5_000
NEW_A_SECOND: Final = 50
EPOCH_MS: Final = 1_790_000_000_000
STEP_MS: Final = 36
"""Between messages: an hour in all."""


class Group:
    """A group that talks, as its wire is seen."""

    def __init__(self, participants: int, seed: int) -> None:
        self.view = View()
        self._random = Random(seed)
        self._names = [f"participant-{number:04}" for number in range(participants)]
        self._newest: deque[str] = deque(maxlen=REFERENCES + BEHIND)
        self._sent = 0
        self._owed: deque[tuple[int, str, str]] = deque()
        for name in self._names:
            self.view.opened(name, EPOCH_MS, "bench")
            for lamp in LAMPS:
                self.view.lamp(name, "", lamp, EPOCH_MS, is_on=self._random.random() > 0.02)

    def say(self) -> None:
        """One more message."""
        view, at_ms = self.view, EPOCH_MS + self._sent * STEP_MS
        name, digest = self._random.choice(self._names), sha256(b"%d" % self._sent).digest()
        behind = min(self._random.randrange(BEHIND), max(0, len(self._newest) - 1))
        known = list(self._newest)[: len(self._newest) - behind][-REFERENCES:]
        view.passed(
            digest.hex(),
            name,
            at_ms,
            references=known,
            has_content=True,
            lamport_timestamp=at_ms,
            size_bytes=SIZE_BYTES,
            hint=digest,
            sent_ms=at_ms,
        )
        view.went_out(name, digest.hex(), "seen", at_ms)
        view.traffic(digest, SIZE_BYTES, 100, at_ms)
        self._miss(digest.hex(), name, at_ms)
        self._newest.append(digest.hex())
        self._sent += 1

    def _miss(self, message_id: str, sender: str, at_ms: int) -> None:
        """A participant misses it for a minute, in `GAPS` of `MESSAGES` cases."""
        if self._random.random() < GAPS / MESSAGES:
            loser = self._random.choice(self._names)
            self.view.is_missing(loser, message_id, at_ms + 500, sender=sender, hint=bytes(32))
            self.view.asked_others(loser, [message_id], at_ms + 5_000)
            self._owed.append((at_ms + 60_000, loser, message_id))
        while self._owed and self._owed[0][0] <= at_ms:
            due, loser, known = self._owed.popleft()
            message = self.view.message(known)
            if message is not None:
                sender = self.view.lanes[message.lane].name
                self.view.entered_log(loser, known, sender, due)


async def measure(group: Group, screenshot: Path) -> Any:
    """Serve the view and use its page, while messages pass."""
    chromium = await anyio.to_thread.run_sync(browser)
    async with anyio.create_task_group() as tasks:
        url = await tasks.start(WatchServer(group.view).run)

        async def go_on() -> None:
            while True:
                await anyio.sleep(1 / NEW_A_SECOND)
                group.say()

        tasks.start_soon(go_on)
        count, picture = str(len(group.view.messages)), str(screenshot)
        script = partial(visited, "frames.mjs", chromium, url, count, picture)
        found = await anyio.to_thread.run_sync(script)
        tasks.cancel_scope.cancel()
    return found


def main() -> None:
    """Print a line for each use of the page, and one for all frames."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.watch")
    parser.add_argument("--participants", type=int, default=PARTICIPANTS)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--screenshot", type=Path, default=Path("build/watch.png"))
    arguments = parser.parse_args()
    arguments.screenshot.parent.mkdir(parents=True, exist_ok=True)
    group, begun = Group(arguments.participants, arguments.seed), time.monotonic()
    for _ in range(arguments.messages):
        group.say()
    took = time.monotonic() - begun
    print(f"{arguments.participants:,} participants, {arguments.messages:,} messages")
    print(f"the view took them in {took:.1f} s ({took / arguments.messages * 1e6:.0f} µs each)")
    found = anyio.run(measure, group, arguments.screenshot.resolve())
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"the page had all of them after {found['loaded'] / 1000:.1f} s")
    every: list[float] = []
    for name, times in found["times"].items():
        every += times
        print(f"{name:42} {figures(times)}")
    print(f"{'all frames':42} {figures(every)}")


def figures(times: list[float]) -> str:
    """Of frame times."""
    p95 = statistics.quantiles(times, n=100)[94]
    return (
        f"median {statistics.median(times):5.1f} ms  95th percentile {p95:5.1f} ms  "
        f"longest {max(times):6.1f} ms  ({len(times)} frames)"
    )


if __name__ == "__main__":
    main()
