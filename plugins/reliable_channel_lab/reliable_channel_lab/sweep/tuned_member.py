"""Self-tuning member of a quiet group, with the core's measurements, timer and copies, but no log.
Members send no requests and no retries. The simulation itself returns a missing message to the
member that noticed its absence."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from reliable_channel.sds import Message, SdsOptions, SdsProtocol
from reliable_channel.sds.adaptive.tuner import Tuner
from reliable_channel.sds.events import OutgoingKind
from reliable_channel.sds.ids import reliable_channel_id
from reliable_channel.sds.profile import SPEC
from reliable_channel.sds.sync import SyncTrigger

from ..sim.quiet import Said

CONTENT: Final = b"a message"
SECOND_MS: Final = 1_000
QUIET_MS: Final = 120_000
"""Time after which sync messages of a core carry the root hash of its log."""


@dataclass(frozen=True, slots=True)
class TunedSaid(Said):
    """Broadcast of a member, with the fields that its receivers read."""

    message: Message
    sent_at_ns: int
    """Waku timestamp of the broadcast. A repeated copy has the timestamp of the first copy, from
    which the message id is made."""


class TunedMember:
    """SDS member with `self_tuning`. The timer is restarted by the same events as in
    `sds/receiving.py`."""

    def __init__(self, interval_ms: int, number: int, now_ms: int, random: Random) -> None:
        self.known = self._has = 0
        self._name = f"p{number}"
        options = SdsOptions(self_tuning=True, sync_min_interval_ms=interval_ms)
        self._tuner = Tuner(options, SPEC.repair_timers, random.random, has_filters=False)
        self._timer = self._tuner.sync_timer
        self._timer.restart(SyncTrigger.START, now_ms)
        self._heard: set[str] = set()
        self._written: dict[str, TunedSaid] = {}

    def write(self, now_ms: int) -> Said:
        """Write the next message. Copies of the message are sent later."""
        self._has = self.known = self._has + 1
        sent_at_ns = now_ms * 1_000_000
        message_id = reliable_channel_id(self._name, sent_at_ns, CONTENT)
        message = Message(self._name, message_id, "quiet", now_ms, content=CONTENT)
        said = TunedSaid(self._has.to_bytes(8), False, message, sent_at_ns)
        self._written = {message_id: said}
        self._tuner.dispatched(message_id, now_ms)
        self._timer.restart(SyncTrigger.OWN_CONTENT, now_ms)
        return said

    def hear(self, said: Said, now_ms: int) -> None:
        """Receive a message, a copy of a message, or a sync message."""
        assert isinstance(said, TunedSaid)
        newest = int.from_bytes(said.data)
        self._heard.add(said.message.sender_id)
        self._tuner.heard(said.message, said.sent_at_ns, now_ms, len(self._heard))
        is_new, was_named = newest > self._has, newest <= self.known
        self.known = max(self.known, newest)
        if said.is_sync:
            if is_new or newest == self._has:
                self._timer.restart(SyncTrigger.SYNC, now_ms)
            else:
                self._timer.prompt(now_ms)
        elif is_new:
            self._has = newest
            missing_for_ms = SECOND_MS if was_named else None
            self._tuner.arrived(said.message, said.sent_at_ns, missing_for_ms, now_ms)
            self._timer.restart(
                SyncTrigger.MISSED_CONTENT if was_named else SyncTrigger.CONTENT, now_ms
            )
        elif self._tuner.came_again(said.message.message_id, now_ms):
            self._timer.prompt(now_ms)

    def recover(self, message: Said, now_ms: int) -> None:
        """Receive a missing message, which counts as content."""
        self.hear(message, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return the time of the next sync message or copy."""
        return self._tuner.agenda.next_ms

    def on_deadline(self, now_ms: int) -> Iterator[Said]:
        """Send due copies and a due sync message."""
        for message_id in self._tuner.take_copies(now_ms):
            yield self._written[message_id]
        if self._timer.due_ms is not None and self._timer.due_ms <= now_ms:
            self._timer.restart(SyncTrigger.OWN_SYNC, now_ms)
            sync = Message(self._name, "", "quiet", now_ms)
            yield TunedSaid(self._has.to_bytes(8), True, sync, now_ms * 1_000_000)


def sync_bytes() -> int:
    """Return the size of a quiet core's sync message, with two references and a root hash."""
    options = SdsOptions(self_tuning=True)
    core = SdsProtocol("quiet", "p0", now_ms=0, random=lambda: 0.5, options=options)
    for number in range(2):
        core.send(CONTENT, now_ms=number * SECOND_MS)
    now_ms = 0
    while now_ms < QUIET_MS:
        now_ms = max(now_ms, core.agenda.next_ms or QUIET_MS)
        core.on_deadline(now_ms)
    *_, sync = (each for each in core.outgoing if each.kind is OutgoingKind.SYNC)
    return len(sync.data)
