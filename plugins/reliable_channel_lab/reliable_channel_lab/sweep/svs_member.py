"""Member of a quiet group that uses State Vector Sync, with the plugin's state machine."""

from collections.abc import Iterator
from random import Random

from ..sim.quiet import Said

try:
    from reliable_channel_svs import Name, PublicationsKnown, StateVector, SvsOptions, SvsProtocol
except ModuleNotFoundError as error:
    raise ValueError(
        "sync_schedule 'svs' needs the plugin reliable-channel-svs; install the plugin with pip"
    ) from error


class SvsMember:
    """Member whose vector names only the members that wrote since the run began. A short vector
    makes the run faster, and the member's timers do not depend on its length."""

    def __init__(self, interval_ms: int, number: int, now_ms: int, random: Random) -> None:
        self.known = 0
        self._svs = SvsProtocol(
            Name.parse(f"/p{number}"),
            now_ms=now_ms,
            random=random.random,
            options=SvsOptions(periodic_timeout_ms=interval_ms),
        )

    def write(self, now_ms: int) -> Said:
        """Publish a message by sending the vector. The vector is sent at once (§4.2), and stands
        for the message in this simulation."""
        self._svs.publish(now_ms)
        self.known += 1
        [vector] = self._svs.outgoing()
        return Said(vector, is_sync=False)

    def hear(self, said: Said, now_ms: int) -> None:
        self._svs.receive(said.data, now_ms)
        for event in self._svs.events():
            if isinstance(event, PublicationsKnown):
                self.known += event.last_seq - event.first_seq + 1

    def recover(self, message: Said, now_ms: int) -> None:
        """Receive a missing publication. A publication changes no timer if a vector has already
        named it."""
        if self._svs.vector.is_outdated_to(StateVector.decode(message.data)):
            self.hear(message, now_ms)

    def next_deadline_ms(self) -> int:
        """Return the time when the timer of the present state ends."""
        return self._svs.next_deadline_ms()

    def on_deadline(self, now_ms: int) -> Iterator[Said]:
        """Send the vector, or leave suppression without sending."""
        self._svs.on_deadline(now_ms)
        return (Said(vector, is_sync=True) for vector in self._svs.outgoing())


def vector_bytes(participants: int) -> int:
    """Return the size of a vector in which each participant has published since its only start."""
    started_s = 1_700_000_000
    return len(
        StateVector({Name.parse(f"/p{n}"): {started_s: 1} for n in range(participants)}).encode()
    )
