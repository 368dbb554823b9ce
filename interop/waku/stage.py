"""Where a cell is played: its participants, and the steps of scenarios."""

from collections.abc import Callable, Collection, Sequence
from time import monotonic, sleep
from typing import Any, Final

from .bench import BenchNetwork
from .cells import Cell
from .container import Died, Event
from .defects import LATE_JOIN
from .peers import JsPeer, OurPeer, Peer, digest
from .stillness import Stillness

PACE_S: Final = 0.05
JS_STOCK_PACE_S: Final = 1.6
"""js-waku does not pace itself: what a stock node's rate limit refuses it takes for sent."""
POLL_S: Final = 2.0
NAMED: Final = 20
"""So many missing messages are named."""
GUARD_S: Final = 1_500
"""When ours count as failed that lack messages: longer than any machine takes, however busy."""
JS_LATE_S: Final = 120
"""From then on js-waku is waited for only while something comes."""
JS_PAST_S: Final = 240
"""How long a late js-waku is waited for where all that it lacks is from before it came."""
STOCK_MORE_S: Final = 600
"""Through a node that takes one message a second."""
JS_PATIENCE_S: Final = 40
"""How long js-waku may stand still before what it misses counts as missed."""


class Stage:
    """A network and the participants of a cell, in the order in which they come."""

    def __init__(self, cell: "Cell[Stage]", network: BenchNetwork) -> None:
        self.cell = cell
        self.network = network
        self.peers: list[Peer] = []
        self.accepted_at: dict[str, float] = {}
        """When each message was accepted, by id."""
        self.began_at: dict[str, float] = {}
        """When each participant's present life was ready."""
        self.attacked_at: float | None = None
        self.forgotten: set[str] = set()
        """Ids of messages that no participant must have: a scenario explains why."""
        self.notes: list[str] = []
        """What the scenario found out besides."""
        self.stillness: dict[str, Stillness] = {}
        """How each of js-waku stood when all were waited for last, by name."""
        self._sent = 0

    # --- who takes part -----------------------------------------------------------------------

    def open(self, *, ours: dict[str, Any] | None = None, js: dict[str, Any] | None = None) -> Peer:
        """The next participant comes; `ours` and `js` are options of the one kind or the other."""
        kind = self.cell.sides[len(self.peers)]
        name = f"{kind}-{len(self.peers) + 1}"
        peer: Peer
        if kind == "ours":
            options = self.cell.scenario.options | (ours or {})
            peer = self.network.ours(name, service=self.cell.service, **options)
        else:
            peer = self.network.js(name, **(js or {}))
        self.peers.append(peer)
        self.began_at[name] = monotonic()
        return peer

    def open_all(
        self, *, ours: dict[str, Any] | None = None, js: dict[str, Any] | None = None
    ) -> None:
        """All that have not come yet."""
        while len(self.peers) < len(self.cell.sides):
            self.open(ours=ours, js=js)

    @property
    def first(self) -> Peer:
        """Participants that opened the channel."""
        return self.peers[0]

    @property
    def second(self) -> Peer:
        return self.peers[1]

    @property
    def ours(self) -> list[OurPeer]:
        return [peer for peer in self.peers if isinstance(peer, OurPeer)]

    @property
    def js(self) -> list[JsPeer]:
        return [peer for peer in self.peers if isinstance(peer, JsPeer)]

    def others(self, peer: Peer) -> list[Peer]:
        return [other for other in self.peers if other is not peer]

    def restart(self, peer: Peer) -> None:
        """Start a killed one again."""
        peer.restart()
        self.began_at[peer.name] = monotonic()

    def attack_begins(self) -> None:
        """From now on a hostile member does what js-waku does not survive."""
        self.attacked_at = monotonic()

    # --- what they say ------------------------------------------------------------------------

    def speak(self, count: int, *speakers: Peer, pace_s: float | None = None) -> None:
        """Each speaker sends so many messages, in turn."""
        for _ in range(count):
            for speaker in speakers or self.peers:
                self.send(speaker)
            sleep(pace_s if pace_s is not None else self._pace_s(speakers or self.peers))

    def send(self, speaker: Peer, payload: bytes | None = None) -> str:
        """One message, unlike all others."""
        self._sent += 1
        message_id = speaker.send(payload or f"{speaker.name} says {self._sent}".encode())
        self.accepted_at[message_id] = monotonic()
        return message_id

    def _pace_s(self, speakers: Sequence[Peer]) -> float:
        js_on_stock = self.cell.node == "stock" and any(isinstance(s, JsPeer) for s in speakers)
        return JS_STOCK_PACE_S if js_on_stock else PACE_S

    # --- what comes of it ---------------------------------------------------------------------

    @property
    def accepted(self) -> dict[str, bytes]:
        """Every message that was accepted, and that counts, by id."""
        return {
            message_id: payload
            for peer in self.peers
            for message_id, payload in peer.accepted.items()
            if message_id not in self.forgotten
        }

    def names(self, message_ids: Collection[str]) -> str:
        """Which messages these are, for a failure report; the oldest first."""
        oldest = sorted(message_ids, key=lambda i: self.accepted_at[i])[:NAMED]
        return ", ".join(f"{i[:8]} {self.accepted[i][:40]!r}" for i in oldest)

    def converge(
        self, js_within_s: float = JS_LATE_S, js_patience_s: float = JS_PATIENCE_S
    ) -> None:
        """Wait until ours have all, and js-waku has all or stands still.

        No time decides over ours: a slow one is waited for until the guard.

        Raises:
            TimeoutError: one of ours has not got all.
        """
        if self.cell.node == "stock":
            js_within_s += STOCK_MORE_S
        began = monotonic()
        self.stillness = {
            peer.name: Stillness(peer, js_patience_s, has_store=self.network.has_store)
            for peer in self.js
        }
        while True:
            logs = {peer.name: log_of(peer) for peer in self.peers}
            wanted = set(self.accepted)
            missing = {
                name: wanted - {entry["message_id"] for entry in log} for name, log in logs.items()
            }
            took_s = monotonic() - began
            js_stands = [self._stands(peer, logs[peer.name], wanted) for peer in self.js]
            js_is_late = took_s > js_within_s and all(s.is_long for s in self.stillness.values())
            js_is_done = all(js_stands) or js_is_late or self._lacks_the_past(missing, took_s)
            js_has_all = not any(missing[peer.name] for peer in self.js)
            ours_have_all = not any(missing[peer.name] for peer in self.ours)
            ours_agree = len({digest(logs[peer.name]) for peer in self.ours}) <= 1
            ours_are_done = ours_have_all and ours_agree
            if ours_are_done and (js_has_all or js_is_done or took_s > GUARD_S):
                return
            if took_s > GUARD_S:
                lacks = "; ".join(
                    f"{name} lacks {len(ids)} messages: {self.names(ids)}"
                    for name, ids in missing.items()
                )
                causes = " // ".join(peer.cause() for peer in self.peers)
                raise TimeoutError(f"after {GUARD_S} s {lacks} // {causes}")
            sleep(POLL_S)

    def _stands(self, js: JsPeer, log: list[Event], wanted: set[str]) -> bool:
        try:
            return self.stillness[js.name].look(log, wanted)
        except Died:
            return True

    def _lacks_the_past(self, missing: dict[str, set[str]], took_s: float) -> bool:
        """Whether js-waku came late, and lacks, for long, only what was said before, or what waits
        for that. It asks for three at a time, so hundreds take a quarter of an hour."""
        if took_s <= JS_PAST_S or LATE_JOIN not in self.cell.scenario.js_may_miss:
            return False
        return all(
            self.accepted_at[message_id] < self.began_at[js.name]
            for js in self.js
            for message_id in missing[js.name] - js.state().waiting
        )

    def acknowledged_by_all(self) -> None:
        """Wait until each has seen, by its own events, that its messages are acknowledged."""
        for peer in self.peers:
            own = set(peer.accepted)
            peer.wait_until(
                lambda peer=peer, own=own: own <= peer.acknowledged(),  # type: ignore[misc]
                GUARD_S,
                f"acknowledgement of all of {len(own)} messages",
            )

    def eventually(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds that has to be asked for."""
        end = monotonic() + GUARD_S
        while not holds():
            if monotonic() > end:
                raise TimeoutError(f"not {what} within {GUARD_S} s")
            sleep(POLL_S)


def log_of(peer: Peer) -> list[Event]:
    """A participant's log; of a dead one nothing."""
    try:
        return peer.log()
    except Died:
        return []
