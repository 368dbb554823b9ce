"""Face that requests Data from a forwarder, and answers Interests from the forwarder."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from ..errors import ForwarderError, TlvError
from ..name import Name
from ..packet import DATA, INTEREST, Data, Interest, decode_data, decode_interest
from ..tlv import read_number
from .link import Link
from .lp import LinkPacket, unwrap, wrap
from .management import COMMAND_LIFETIME_MS, Command, check_response


class NoData(ForwarderError):
    """Error that an Interest was not answered in time, or that the forwarder returned a Nack."""


@dataclass(slots=True, eq=False)
class _Pending:
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Data | int | None = None
    """The Data, or the reason of a Nack."""


class Face:
    """Face for one forwarder over one link, as long as the link exists.

    `on_interest` returns the Data for an Interest, or None, and must not wait. `on_refused` is
    called with received bytes that are no packet.
    """

    def __init__(
        self,
        link: Link,
        on_interest: Callable[[Interest], bytes | None],
        on_refused: Callable[[str], None],
    ) -> None:
        self._link = link
        self._on_interest = on_interest
        self._on_refused = on_refused
        self._pending: dict[Name, list[_Pending]] = {}

    async def run(self) -> None:
        """Receive packets of the forwarder until the link ends.

        Raises:
            ForwarderError: the link ended.
        """
        while True:
            wire = await self._link.receive()
            try:
                await self._take(unwrap(wire))
            except TlvError as error:
                self._on_refused(str(error))

    async def send(self, packet: bytes) -> None:
        """Send an Interest to which no Data is expected.

        Raises:
            ForwarderError: the link is gone.
        """
        await self._link.send(packet)

    async def express(self, interest: Interest) -> Data:
        """Request the Data packet of a name, and return it. The caller must check the signature of
        the Data packet.

        Raises:
            NoData: no member has the Data, or none sent it in time.
            ForwarderError: the link is gone.
        """
        return await self._ask(interest.name, interest.encode(), interest.lifetime_ms)

    async def command(self, command: Command) -> None:
        """Send a command to the forwarder.

        Raises:
            ForwarderError: the forwarder did not carry out the command.
        """
        data = await self._ask(command.name, command.wire, COMMAND_LIFETIME_MS)
        check_response(command, data.content)

    async def _ask(self, name: Name, wire: bytes, lifetime_ms: int) -> Data:
        pending = _Pending()
        self._pending.setdefault(name, []).append(pending)
        try:
            with anyio.move_on_after(lifetime_ms / 1000):
                await self._link.send(wire)
                await pending.answered.wait()
        finally:
            waiting = self._pending[name]
            waiting.remove(pending)
            if not waiting:
                del self._pending[name]
        if isinstance(pending.answer, Data):
            return pending.answer
        if pending.answer is None:
            raise NoData(f"{name}: no data arrived within {lifetime_ms} ms")
        raise NoData(
            f"{name}: the forwarder returned the Interest, "
            f"{NACK_REASONS.get(pending.answer, pending.answer)}"
        )

    async def _take(self, received: LinkPacket) -> None:
        type_, _ = read_number(memoryview(received.packet), 0)
        if type_ == DATA:
            data = decode_data(received.packet)
            self._resolve(data.name, data)
        elif type_ == INTEREST and received.nack_reason is not None:
            self._resolve(decode_interest(received.packet).name, received.nack_reason)
        elif type_ == INTEREST:
            answer = self._on_interest(decode_interest(received.packet))
            if answer is not None:
                await self._link.send(wrap(answer, received.pit_token))
        else:
            raise TlvError(f"the forwarder sent a packet of the unknown type {type_}")

    def _resolve(self, name: Name, answer: Data | int) -> None:
        for pending in self._pending.get(name, ()):
            pending.answer = answer
            pending.answered.set()


NACK_REASONS: Final = {0: "no reason given", 50: "congestion", 100: "duplicate", 150: "no route"}
"""Texts for the values of the element NackReason in NDNLPv2."""
