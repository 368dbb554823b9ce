"""Server for the requests of libp2p peers, with one request and one answer on each stream."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from waku.libp2p import InvalidInput, Libp2pError, LimitExceeded, PeerViolation
from waku.libp2p.driver import Handler, Stream
from waku.node.host import ServiceHost
from waku.node.libp2p.answers import Answers, Respond
from waku.node.libp2p.guests import Guest, Guests
from waku.node.libp2p.options import ListenLimits
from waku.node.libp2p.reports import Reports

__all__ = ["Serving"]

_log = logging.getLogger("waku.node.libp2p")


class Serving:
    """Handlers of the protocols light push, filter, Store, metadata and peer exchange.

    Args:
        node: whose services they are.
        limits: what a peer may cost.
        reports: gets a line for each peer that does what it may not.
        records: returns node records for peers that ask for others.
        tasks: where messages are pushed to peers.
    """

    def __init__(
        self,
        node: ServiceHost,
        limits: ListenLimits,
        reports: Reports,
        records: Callable[[], Sequence[bytes]],
        tasks: TaskGroup,
    ) -> None:
        self.guests: Final = Guests(node, limits, reports, tasks)
        """The peers that ask."""
        self._limits = limits
        self._reports = reports
        self._answers = Answers(node, limits, records)

    def handlers(self) -> dict[str, Handler]:
        """Return the handler of each protocol that the node's options switch on."""
        return {
            protocol: partial(self._serve, respond, limit_bytes)
            for protocol, (respond, limit_bytes) in self._answers.offered().items()
        }

    async def _serve(self, respond: Respond, limit_bytes: int, stream: Stream) -> None:
        """Answer the one request of a stream, when it comes: js-waku opens streams ahead (T10)."""
        if not await stream.readable():
            return
        link = stream.link
        guest = self.guests.of(link)
        async with guest.turn:
            try:
                with anyio.fail_after(self._limits.request_ms / 1000):
                    await self._answer(respond, limit_bytes, stream, guest)
            except TimeoutError:
                took = f"a request and its answer took {self._limits.request_ms} ms"
                link.close(PeerViolation(f"{took} (`request_ms`)"))
            except (InvalidInput, LimitExceeded) as error:
                self._reports.note("bad request", guest.peer_id, f"{stream.protocol}: {error}")
                stream.reset()
            except Libp2pError:
                raise  # the peer abandoned its stream or its connection
            except Exception:  # T8: one request must not end the others
                _log.exception("a request of %s failed: %s", guest.peer_id, stream.protocol)
                stream.reset()

    async def _answer(
        self, respond: Respond, limit_bytes: int, stream: Stream, guest: Guest
    ) -> None:
        data = await stream.receive_message(limit_bytes)
        if data is None:
            return
        answer = await respond(guest, data)
        self.guests.answering_bytes += len(answer)
        try:
            await stream.send_message(answer)
        finally:
            self.guests.answering_bytes -= len(answer)
