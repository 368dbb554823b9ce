"""Faults of a container's network, made from outside it: the image needs nothing.

Firewall rules in the container's network namespace make loss and cuts. Many kernels come without
netem, so delay, jitter and reordering are a queue in user space (`delay_queue.py`). Needs Linux,
root, `nsenter` and `iptables`.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final, Self

DELAY_QUEUE: Final = Path(__file__).with_name("delay_queue.py")
QUEUE_NUMBER: Final = 7
EVERYBODY: Final = None


class NetFaults:
    """The faults of one container; all end with `heal`, with `with`, or with the container."""

    def __init__(self, pid: int) -> None:
        if pid == 0:
            raise RuntimeError("the container does not run")
        self.pid = pid
        self._inside = ("nsenter", f"--net=/proc/{pid}/ns/net")
        self._queues: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()

    def lose(self, share: float, *, peer: str | None = EVERYBODY) -> None:
        """Lose each incoming packet with this probability; TCP sends it again, and is slower."""
        chance = ("-m", "statistic", "--mode", "random", "--probability", str(share))
        self._rule("INPUT", "-s", peer, *chance, "-j", "DROP")

    def cut(
        self, peer: str | None = EVERYBODY, *, incoming: bool = True, outgoing: bool = True
    ) -> None:
        """Drop the traffic with one address, or with all, silently: connections seem to be there
        and carry nothing."""
        if incoming:
            self._rule("INPUT", "-s", peer, "-j", "DROP")
        if outgoing:
            self._rule("OUTPUT", "-d", peer, "-j", "DROP")

    def refuse(self, peer: str | None = EVERYBODY) -> None:
        """Break all connections with one address, or with all, and let no new one come about."""
        reset = ("-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")
        self._rule("INPUT", "-s", peer, *reset)
        self._rule("OUTPUT", "-d", peer, *reset)

    def delay(self, ms: float, *, jitter_ms: float = 0.0, seed: int = 1) -> None:
        """Hold each incoming packet for so long, give or take `jitter_ms`, which reorders them.

        Incoming, since a packet that is held on its way out counts as unsent data of its socket,
        of which TCP allows little.
        """
        settings = map(str, (QUEUE_NUMBER, ms, jitter_ms, seed))
        queue = subprocess.Popen(
            [*self._inside, sys.executable, str(DELAY_QUEUE), *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._queues.append(queue)
        assert queue.stdout is not None
        if queue.stdout.readline().strip() != b"ready":
            raise RuntimeError(f"the delay queue does not start: exit status {queue.wait()}")
        target = ("-j", "NFQUEUE", "--queue-num", str(QUEUE_NUMBER), "--queue-bypass")
        self._rule("INPUT", "-s", EVERYBODY, *target)

    def heal(self) -> None:
        for chain in ("INPUT", "OUTPUT"):  # Docker's own rules are in another table
            self._run("iptables", "-w", "10", "-F", chain)
        for queue in self._queues:
            queue.terminate()
            queue.communicate()
        self._queues.clear()

    def _rule(self, chain: str, direction: str, peer: str | None, *rest: str) -> None:
        interface = {"INPUT": "-i", "OUTPUT": "-o"}[chain]
        whom = (direction, peer) if peer else ()
        self._run("iptables", "-w", "10", "-A", chain, "!", interface, "lo", *whom, *rest)

    def _run(self, *command: str) -> None:
        done = subprocess.run([*self._inside, *command], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
