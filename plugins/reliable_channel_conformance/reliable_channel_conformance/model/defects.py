"""Defects as subclasses of the rules, each of which changes one rule."""

from .group import EVERYTHING
from .rules import Event, Log, Names, Packet, Participant, Rules, ids, without


class DeliversDuplicates(Rules):
    """Rules with defect D01, which deliver a repeated message again."""

    def receive(self, me: Participant, packet: Packet) -> tuple[Participant, list[Event]]:
        if packet.sender != me.name and packet.message_id in me.ids:
            me = me._replace(received=without(me.received, packet.message_id))
        return super().receive(me, packet)


class TakesParkedForPresent(Rules):
    """Rules with defect D02, which take waiting dependencies for delivered messages."""

    def is_met(self, me: Participant, message_id: str) -> bool:
        parked = any(packet.message_id == message_id for packet in me.parked)
        return parked or super().is_met(me, message_id)


class DropsAfterLoss(Rules):
    """Rules with defect D03, which drop messages whose dependency was given up."""

    def give_up(self, me: Participant) -> tuple[Participant, list[Event]]:
        return super().give_up(me._replace(parked=()))


class CountsFilters(Rules):
    """Rules with defect D07, which count filters instead of participants."""

    def witnesses(self, seen_by: Names, packet: Packet, message_id: str) -> Names:
        return tuple(sorted((*seen_by, packet.sender))) if message_id in packet.filter else seen_by


class BelievesFullFilters(Rules):
    """Rules with defect P4, which accept full filters as acknowledgements."""

    def witnesses(self, seen_by: Names, packet: Packet, message_id: str) -> Names:
        if EVERYTHING in packet.filter:
            packet = packet._replace(filter=(message_id,))
        return super().witnesses(seen_by, packet, message_id)


class NeverRollsOver(BelievesFullFilters):
    """Rules with defect D09, which fill the filter without limit."""

    def packet(self, me: Participant, message_id: str, lamport: int) -> Packet:
        packet = super().packet(me, message_id, lamport)
        return packet._replace(filter=(EVERYTHING,)) if len(me.received) > self.capacity else packet


class AsksOnce(Rules):
    """Rules with defect D18, which count another participant's request as an own request."""

    def packet(self, me: Participant, message_id: str, lamport: int) -> Packet:
        packet = super().packet(me, message_id, lamport)
        return packet._replace(requests=without(packet.requests, *me.asked))

    def send(self, me: Participant, message_id: str) -> tuple[Participant, Packet]:
        me, packet = super().send(me, message_id)
        return self._noted(me, packet), packet

    def sync(self, me: Participant) -> tuple[Participant, Packet]:
        me, packet = super().sync(me)
        return self._noted(me, packet), packet

    def receive(self, me: Participant, packet: Packet) -> tuple[Participant, list[Event]]:
        is_new = packet.sender != me.name and packet.message_id not in me.received
        return super().receive(self._noted(me, packet) if is_new else me, packet)

    def _noted(self, me: Participant, packet: Packet) -> Participant:
        return me._replace(asked=ids(me.asked, packet.requests))


class DeliversAsArrived(Rules):
    """Rules with defect D30, which deliver waiting messages in order of arrival."""

    def release(self, me: Participant, events: list[Event]) -> Participant:
        ready, met = list[Packet](), {*me.ids, *me.lost}
        while more := [p for p in me.parked if p not in ready and met.issuperset(p.history)]:
            ready += more
            met.update(packet.message_id for packet in more)
        arrived = [packet for packet in me.parked if packet in ready]
        me = me._replace(parked=tuple(each for each in me.parked if each not in ready))
        for packet in arrived:
            me = self.deliver(me, packet, events)
        return me


class LeavesTies(Rules):
    """Rules with defect P1, which leave messages of equal timestamps in order of arrival."""

    def inserted(self, log: Log, entry: tuple[int, str]) -> Log:
        return tuple(sorted((*log, entry), key=lambda each: each[0]))


class KeepsItsClock(Rules):
    """Rules with defect P2, which ignore the timestamps of delivered messages."""

    def deliver(self, me: Participant, packet: Packet, events: list[Event]) -> Participant:
        return super().deliver(me, packet, events)._replace(clock=me.clock)


class LogsSyncs(Rules):
    """Rules with defect P3, which put sync messages into the log. Readers with defect P3 have
    different logs, because their sync messages differ. A group whose rules have defect P3 may have
    at most one reader."""

    def sync(self, me: Participant) -> tuple[Participant, Packet]:
        me, packet = super().sync(me)
        return me._replace(log=self.inserted(me.log, (me.clock, packet.message_id))), packet


class ForgetsLost(Rules):
    """Rules with defect P5, which do not look for a given-up message again."""

    def receive(self, me: Participant, packet: Packet) -> tuple[Participant, list[Event]]:
        after, events = super().receive(me, packet)
        return after._replace(missing=without(after.missing, *me.lost)), events
