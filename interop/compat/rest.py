"""What the official REST harness takes for containers of nwaku: embedded nodes in this process.

The harness starts an image with nwaku's flags and calls its REST port. Here the flags make an
`EmbeddedNode`, as it is shipped, that answers there; `docker_stand_in` puts it where the harness
looks for Docker. Nodes reach each other by libp2p, through the sockets of `ContainerNetwork`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from random import SystemRandom
from threading import Event
from types import TracebackType
from typing import Any, Final, Self, TypeAlias
from uuid import uuid4

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from waku.node import EmbeddedNode, serve_node

from .addresses import ADDRESSES
from .container_network import ContainerNetwork
from .egress import Egress
from .failures import first_alone
from .flags import BadFlag, NodeFlags
from .metrics_server import serve_metrics

__all__ = ["BadFlag", "Container", "Engine"]

HOST: Final = "127.0.0.1"
Lead: TypeAlias = Callable[[str], Awaitable[str]]
"""From an address of Docker's network to one of this machine."""
STOP_S: Final = 20.0
PIDS: Final = count(2**22 + 1)
"""Above the greatest process id of Linux, so that no process is meant by mistake."""
SEED: Final = "RELIABLE_CHANNEL_COMPAT_SEED"
"""Variable with the seed of each rule of `tc` that names none."""


class _Node(EmbeddedNode):
    """A node that dials where others really answer."""

    def __init__(self, flags: NodeFlags, lead: Lead, **peers: Any) -> None:
        super().__init__(flags.options, listen=flags.listen, **peers)
        self.dialled: dict[str, None] = {}
        """Addresses of the REST API, which are dialled again after a restart."""
        self._lead = lead

    async def dial(self, address: str, *, stay: bool = True) -> None:
        await super().dial(await self._lead(address), stay=stay)
        if stay:
            self.dialled[address] = None


class Container:
    """A node with the methods of docker-py's containers that the harness calls."""

    def __init__(self, portal: BlockingPortal, flags: NodeFlags, folder: Path):
        self.id = uuid4().hex
        self.short_id = self.id[:12]
        self.status = "created"
        self.pid = next(PIDS)
        self.address = ""
        """Where its REST API answers."""
        self._portal = portal
        self._flags = flags
        self._folder = folder
        self._ended = Event()
        self._node: _Node
        self._wires: ContainerNetwork
        self._egress: Egress
        self._running: Future[None]
        self._stopping: anyio.Event
        self._start(())

    @property
    def rest_port(self) -> int:
        """The port of the address."""
        return int(self.address.rpartition(":")[2])

    def stop(self) -> None:
        """End the node; what it stored stays until `remove`."""
        if self.status != "exited":
            self._stop()
            self._ended.set()

    kill = stop

    def remove(self) -> None:
        """End it, and forget what it stored."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start a node that was stopped, under its name."""
        if self.status == "exited":
            self._ended.clear()
            self._start(())

    def restart(self) -> None:
        """End the node and start it again under its name; it dials again what it had dialled."""
        dialled = self._portal.call(self._dialled)
        self._stop()
        self._start(dialled)

    def pause(self) -> None:
        """Freeze it, as a process that does not run: nothing is answered, taken or sent."""
        self._portal.call(self._wires.freeze)
        self.status = "paused"

    def unpause(self) -> None:
        """Undo `pause`."""
        self._portal.call(self._wires.thaw)
        self.status = "running"

    @property
    def attrs(self) -> Mapping[str, Mapping[str, int]]:
        """Its process id, as `docker inspect` has it; 0 where it does not run."""
        return {"State": {"Pid": 0 if self.status == "exited" else self.pid}}

    def reload(self) -> None:
        """Do nothing: `attrs` is what is so now."""

    def tc(self, arguments: Sequence[str]) -> str:
        """Shape what leaves it, until it stops; return the output of `tc`.

        Raises:
            BadCommand: it cannot be obeyed.
        """
        return self._portal.call(self._egress.tc, arguments)

    def logs(self, *, stream: bool) -> Iterator[bytes]:
        """Where the node answers, and the end when it ends."""
        yield f"listening on {self.address}\n".encode()
        if stream:
            self._ended.wait()

    # -- in the event loop ------------------------------------------------------------------------

    def _start(self, dialled: Sequence[str]) -> None:
        with first_alone():
            self._running, self._node = self._portal.start_task(self._run, dialled)
        self._flags = replace(self._flags, rest_port=self.rest_port)  # which stays
        self.status = "running"

    def _stop(self) -> None:
        ADDRESSES.forget(self._flags.host, self._flags.tcp_port)
        self._portal.call(self._stopping.set)
        self._running.result(STOP_S)
        self.status = "exited"

    async def _dialled(self) -> Sequence[str]:
        return list(self._node.dialled)

    async def _run(
        self,
        dialled: Sequence[str],
        *,
        task_status: TaskStatus[_Node] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        flags = self._flags
        self._stopping = anyio.Event()
        self._egress = Egress(_seed)
        wires = self._wires = ContainerNetwork(self._egress)
        async with anyio.create_task_group() as tasks:
            lead = partial(wires.lead, tasks)
            node = _Node(
                flags,
                lead,
                relay_peers=[await lead(one) for one in (*flags.join, *dialled)],
                service_nodes={kind: await lead(one) for kind, one in flags.service_nodes.items()},
            )
            node.dialled = dict.fromkeys(dialled)
            for topic in flags.content_topics:
                node.relay.subscribe_content(node.clients.unnamed, topic)

            def started(address: str) -> None:
                self.address = address
                task_status.started(node)

            async with node:
                assert node.network is not None
                port = await wires.expose(tasks, node.network.bound[0].dial_target.port)
                ADDRESSES.lead(flags.host, flags.tcp_port, port)
                if (metrics := flags.metrics_port) is not None:
                    await tasks.start(partial(serve_metrics, node, host=HOST, port=metrics))
                app = wires.in_front_of(node.app)
                serve = partial(serve_node, node, port=flags.rest_port, app=app, started=started)
                tasks.start_soon(serve)
                await self._stopping.wait()
            tasks.cancel_scope.cancel()


class Engine:
    """Runs nodes in a separate event loop. Use it in `with`."""

    def __init__(self) -> None:
        self.containers: dict[str, Container] = {}
        self._exit = ExitStack()
        self._portal: BlockingPortal | None = None

    def run(self, arguments: Sequence[str]) -> Container:
        """Start a node with nwaku's flags; return once it answers.

        Raises:
            BadFlag: a flag that is not known or cannot be obeyed.
            CannotListen: its REST port is taken.
        """
        if self._portal is None:
            raise RuntimeError("use the engine inside `with`")
        folder = Path(tempfile.mkdtemp(prefix="waku-"))
        try:
            flags = NodeFlags.of(arguments, folder)
            container = Container(self._portal, flags, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.containers[container.id] = container
        return container

    def __enter__(self) -> Self:
        self._portal = self._exit.enter_context(start_blocking_portal(name="waku nodes"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for container in self.containers.values():
            container.remove()
        self._exit.close()
        self._portal = None


def _seed() -> int:
    return int(os.environ.get(SEED) or SystemRandom().getrandbits(32))
