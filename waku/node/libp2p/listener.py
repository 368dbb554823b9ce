"""`Listener`: the face of a node to libp2p peers."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Final, Self

import anyio
from anyio.abc import SocketListener

from waku.discovery import NodeRecord
from waku.libp2p import (
    InvalidInput,
    KeyType,
    Libp2pError,
    LimitExceeded,
    Limits,
    Multiaddr,
    PeerViolation,
    PrivateKey,
)
from waku.libp2p.driver import Host, HostLimits, LinkEnded, Stream
from waku.node.errors import CannotListen
from waku.node.host import Host as Node
from waku.node.libp2p.addresses import own_record, reachable
from waku.node.libp2p.answers import Answers, Respond
from waku.node.libp2p.certificate import Certificate
from waku.node.libp2p.guests import Guest, Guests
from waku.node.libp2p.identity_file import IdentityFile
from waku.node.libp2p.options import Listen
from waku.node.libp2p.reports import Reports
from waku.node.listening import already_bound
from waku.node.open_files import files_allowed

__all__ = ["Listener"]

CERTIFICATE_S: Final = 60.0
"""Interval in which the files of the certificate are looked at."""

_log = logging.getLogger("waku.node.libp2p")


class Listener:
    """Serves light push, filter, Store, metadata and peer exchange to libp2p peers.

    An asynchronous context manager; within it the node listens.

    Raises:
        CannotListen: the identity or the certificate cannot be used.
    """

    def __init__(
        self, node: Node, listen: Listen, *, random_bytes: Callable[[int], bytes] = os.urandom
    ) -> None:
        self.reports: Final = Reports(node.options.now_ns)
        """What peers did that they may not."""
        self.addresses: tuple[Multiaddr, ...] = ()
        """Where peers reach the node, with its peer id; empty until it listens."""
        self.record = ""
        """The node's own record (`enr:…`); empty until it listens, and where it has none."""
        self.guests: Guests | None = None
        """The peers that are connected; None until the node listens."""
        self._node = node
        self._listen = listen
        self._random_bytes = random_bytes
        self._certificate: Certificate | None = None
        if listen.tls_certificate is not None and listen.tls_key is not None:
            self._certificate = Certificate(listen.tls_certificate, listen.tls_key)
        self._file: IdentityFile | None = None
        if isinstance(listen.identity, PrivateKey):
            self.identity = listen.identity
        elif listen.identity is None:
            self.identity = PrivateKey(KeyType.SECP256K1, random_bytes(32))
        else:
            self._file = IdentityFile(listen.identity)
            self.identity = self._file.key
        self._host = self._new_host()
        self._stack = AsyncExitStack()

    @property
    def connections(self) -> int:
        """Connections that are open, those too that are still in their handshake."""
        return len(self._host.links)

    async def __aenter__(self) -> Self:
        try:
            await self._enter(self._stack)
        except BaseException:
            # Without the exception, which task groups would wrap in an ExceptionGroup.
            await self._stack.aclose()
            raise
        return self

    async def _enter(self, stack: AsyncExitStack) -> None:
        if self._file is not None:
            stack.callback(self._file.close)
        host = await stack.enter_async_context(self._host)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        self.guests = Guests(self._node, self._listen.limits, self.reports, tasks)
        answers = Answers(self._node, self._listen.limits, self._records)
        for protocol, (respond, limit_bytes) in answers.offered().items():
            host.handlers[protocol] = partial(self._serve, respond, limit_bytes)
        for text in self._listen.addresses:
            await self._listen_at(host, text)
        self._announce(host)
        if self._certificate is not None:
            tasks.start_soon(self._follow_certificate, self._certificate)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()  # the block's exception goes on as it is

    def _new_host(self) -> Host:
        limits, origins = self._listen.limits, self._node.options.allow_origins
        return Host(
            self.identity,
            agent=self._node.agent,
            limits=Limits(
                handshake_ms=limits.handshake_ms,
                idle_ms=limits.idle_ms,
                streams_by_peer=limits.streams,
                negotiating_streams=limits.streams,
                stream_buffer_bytes=limits.buffer_bytes,
                connection_buffer_bytes=limits.buffer_bytes,
                frames_per_s=limits.frames_per_s,
                write_ms=limits.request_ms,
            ),
            host_limits=HostLimits(
                connections=min(limits.connections, files_allowed()),
                connections_by_address=limits.connections_by_address,
            ),
            origins=() if "*" in origins else origins,
            random_bytes=self._random_bytes,
            on_ended=self._ended,
        )

    async def _listen_at(self, host: Host, text: str) -> None:
        """Bind one address; it is announced as where it can be dialled."""
        context = None if self._certificate is None else self._certificate.context
        address = Multiaddr.parse(text)
        target = address.dial_target
        try:
            ready = already_bound(self._listen.bound, target.host, target.port)
            listener = None if ready is None else await SocketListener.from_socket(ready)
            bound = await host.listen(address, ssl_context=context, listener=listener)
        except OSError as error:
            raise CannotListen(
                f"cannot listen at {text}: {error.strerror or error}; choose another port or "
                "address (--listen)"
            ) from error
        self.addresses += tuple(reachable(bound))

    def _announce(self, host: Host) -> None:
        peer_id = self.identity.peer_id
        if self._listen.announce:
            announced = map(Multiaddr.parse, self._listen.announce)
            self.addresses = tuple(address.with_peer_id(peer_id) for address in announced)
        host.listen_addresses[:] = self.addresses
        self.record = own_record(self.identity, self.addresses, self._node.options) or ""

    def _records(self) -> list[bytes]:
        """Node records for peers that ask: those of the options, and our own."""
        texts = (*self._listen.known_peers, *((self.record,) if self.record else ()))
        return [NodeRecord.parse(text).encoded for text in texts]

    async def _follow_certificate(self, certificate: Certificate) -> None:
        while True:
            await anyio.sleep(CERTIFICATE_S)
            certificate.follow()

    async def _serve(self, respond: Respond, limit_bytes: int, stream: Stream) -> None:
        """Answer the one request of a stream, when it comes: js-waku opens streams ahead (T10)."""
        assert self.guests is not None
        if not await stream.readable():
            return
        link = stream.link
        guest = self.guests.of(link)
        async with guest.turn:
            try:
                with anyio.fail_after(self._listen.limits.request_ms / 1000):
                    await self._answer(respond, limit_bytes, stream, guest)
            except TimeoutError:
                took = f"a request and its answer took {self._listen.limits.request_ms} ms"
                link.close(PeerViolation(f"{took} (`request_ms`)"))
            except (InvalidInput, LimitExceeded) as error:
                self.reports.note("bad request", guest.peer_id, f"{stream.protocol}: {error}")
                stream.reset()
            except Libp2pError:
                raise  # the peer abandoned its stream or its connection
            except Exception:  # T8: one request must not end the others
                _log.exception("a request of %s failed: %s", guest.peer_id, stream.protocol)
                stream.reset()

    async def _answer(
        self, respond: Respond, limit_bytes: int, stream: Stream, guest: Guest
    ) -> None:
        assert self.guests is not None
        data = await stream.receive_message(limit_bytes)
        if data is None:
            return
        answer = await respond(guest, data)
        self.guests.answering_bytes += len(answer)
        try:
            await stream.send_message(answer)
        finally:
            self.guests.answering_bytes -= len(answer)

    def _ended(self, ended: LinkEnded) -> None:
        if isinstance(ended.reason, PeerViolation):
            self._report(ended)
        if ended.peer_id is not None and self.guests is not None:
            self.guests.left(ended.peer_id)

    def _report(self, ended: LinkEnded) -> None:
        reason = ended.reason
        kind = reason.limit if isinstance(reason, LimitExceeded) else type(reason).__name__
        who = f"{ended.peer_id or 'without a name'} at {ended.address or 'an unknown address'}"
        self.reports.note(kind, who, f"its connection is closed: {reason}")
