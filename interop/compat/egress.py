"""TCP over a container's interface: how long its bytes take to leave, with what `tc` asks for.

As on Linux the rule is for what leaves, so a call on a new connection waits twice: for the
handshake and for the message. Bytes come in order and once, as over any TCP connection; it makes
of a lost packet a wait, and of a packet that overtakes others nothing.
"""

from __future__ import annotations

from typing import Final

import anyio

from .qdisc import Qdisc
from .tc import Interface

__all__ = ["Egress", "GaveUp"]

SEGMENT_BYTES: Final = 1448
"""Of a message in one packet, over Ethernet with TCP's timestamps."""
HEADER_BYTES: Final = 66
"""Of Ethernet, IP and TCP in each packet."""
RETRANSMIT_S: Final = 0.2
"""Before a packet of a message is sent again; twice as long each time nothing passes (Linux:
`TCP_RTO_MIN`, over a path that takes no time)."""
RETRANSMISSIONS: Final = 15
"""In a row of which nothing passes, before a connection is given up (`tcp_retries2`)."""
HANDSHAKE_RETRANSMIT_S: Final = 1.0
"""The same for the packets that open a connection (RFC 6298)."""
HANDSHAKE_RETRANSMISSIONS: Final = 6
"""As `tcp_syn_retries`."""
LONGEST_S: Final = 120.0


def _doubled(first_s: float, number: int) -> tuple[float, ...]:
    return tuple(min(first_s * 2**n, LONGEST_S) for n in range(number))


# A probe for the last packet is sent before the waits begin to double (RFC 8985).
MESSAGE_WAITS_S: Final = (RETRANSMIT_S, *_doubled(RETRANSMIT_S, RETRANSMISSIONS))
HANDSHAKE_WAITS_S: Final = _doubled(HANDSHAKE_RETRANSMIT_S, HANDSHAKE_RETRANSMISSIONS)


class GaveUp(Exception):
    """Nothing passed for so long that TCP gives the connection up."""


class Egress(Interface):
    """What leaves one container. Its waits are in the event loop's time."""

    async def open_connection(self) -> None:
        """Return once our SYN has left.

        Raises:
            GaveUp: it does not.
        """
        await self._carry([HEADER_BYTES], HANDSHAKE_WAITS_S)

    async def accept_connection(self) -> None:
        """Return once our answer to a SYN has left.

        Raises:
            GaveUp: it does not.
        """
        # It is sent again by itself, and for the SYN that the other side sends again meanwhile.
        await self._carry([HEADER_BYTES], HANDSHAKE_WAITS_S, repeats=2)

    async def message(self, size_bytes: int) -> None:
        """Return once a message of that many bytes has left as a whole.

        Raises:
            GaveUp: it does not.
        """
        whole, rest = divmod(size_bytes, SEGMENT_BYTES)
        packets = [HEADER_BYTES + SEGMENT_BYTES] * whole
        await self._carry([*packets, HEADER_BYTES + rest] if rest else packets, MESSAGE_WAITS_S)

    async def _carry(
        self, packets: list[int], waits_s: tuple[float, ...], *, repeats: int = 1
    ) -> None:
        """Send packets, and those that are lost again, so many times after each wait."""
        left_s, copies, silent = anyio.current_time(), 1, 0
        while packets and self.rule is not None:
            lost = list[int]()
            for size_bytes in packets:
                left = self._leave(self.rule, size_bytes, copies)
                left_s = max(left_s, left or 0.0)
                if left is None:
                    lost.append(size_bytes)
            silent = silent + 1 if len(lost) == len(packets) else 0
            if silent > len(waits_s):
                raise GaveUp(f"{len(lost)} packets were sent {silent} times, and none passed")
            if lost:
                await anyio.sleep(waits_s[max(silent - 1, 0)])
            packets, copies = lost, repeats
        await anyio.sleep_until(left_s)

    @staticmethod
    def _leave(rule: Qdisc, size_bytes: int, copies: int) -> float | None:
        """Send copies of a packet; return when the first one leaves, None where all are lost."""
        leaves = (rule.leaves_at(size_bytes, anyio.current_time()) for _ in range(copies))
        return min((leaves_s for leaves_s in leaves if leaves_s is not None), default=None)
