"""Recorded conversations of js-waku participants, replayed on the core.

A comparison without js-waku's defects (FORMAT.md): sent bytes, log, Lamport timestamp, outgoing
buffer, and the delivered and acknowledged events, up to the first step whose note carries a `D`
tag. The topics `random` and `collation` hold deviations without a tag; there, only that what
js-waku delivered is delivered here, once and in causal order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from reliable_channel.sds import JS_WAKU, Message, RepairOptions, SdsOptions, SdsProtocol
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.errors import SdsError
from reliable_channel.sds.events import MessageAcknowledged, MessageReceived, SdsEvent
from reliable_channel.sds.ids import js_waku_id
from reliable_channel.sds.message import LogEntry
from tests import inside
from tests.sds.world import taken

from .case import Result, cases, first_difference, optional_hex, wire

DELIVERY_ONLY = {"random", "collation"}
_DEVIATION = re.compile(r"D\d")
_DELIVERED = "sds:in:message-delivered"
_OBSERVED = {_DELIVERED, "sds:out:message-acknowledged"}


def check_scenarios(document: Any) -> Iterator[Result]:
    yield from cases(document, _scenario)


def _scenario(case: Any) -> str | None:
    replay = Replay(case)
    return replay.deliveries() if case["topic"] in DELIVERY_ONLY else replay.steps()


@dataclass
class Participant:
    core: SdsProtocol
    delivered: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    """What was in the log before the step: js-waku delivers it again (D01), with or without a
    tag."""

    def take(self) -> tuple[list[bytes], set[str]]:
        """What was sent, and which ids were delivered or acknowledged, since the last call."""
        observed = set()
        for event in taken(self.core.events):
            observed |= self._observe(event)
        return [outgoing.data for outgoing in taken(self.core.outgoing)], observed

    def _observe(self, event: SdsEvent) -> set[str]:
        match event:
            case MessageReceived(message_id=message_id):
                self.delivered.append(message_id)
                return {f"sds:in:message-delivered {message_id}"}
            case MessageAcknowledged(message_id=message_id):
                return {f"sds:out:message-acknowledged {message_id}"}
        return set()


class Replay:
    """One case: its participants as cores that behave as js-waku does where the specification
    leaves a choice."""

    def __init__(self, case: Any) -> None:
        self.case = case
        self.wires = {label: wire(m["wire"]) for label, m in case["messages"].items()}
        self.messages = {label: SpecCodec().decode(data) for label, data in self.wires.items()}
        self.participants = {
            letter: Participant(_core(setup)) for letter, setup in case["participants"].items()
        }

    def steps(self) -> str | None:
        for step in self.case["steps"]:
            if _DEVIATION.match(step.get("note") or ""):
                return None
            if step.get("who") is None:
                continue
            participant = self.participants[step["who"]]
            try:
                self._perform(participant.core, step)
            except SdsError:
                if "threw" not in step:
                    raise
            if difference := self._compare(participant, step):
                return f"step {step['i']} ({step['op']} {step['who']}): {difference}"
        return None

    def deliveries(self) -> str | None:
        """Only what arrives is replayed, with sweeps: what a participant sent is taken from the
        recording."""
        for letter, participant in self.participants.items():
            expected: list[str] = []
            for step in self.case["steps"]:
                if step.get("who") != letter:
                    continue
                self._perform_delivery(participant.core, step)
                participant.take()
                expected += [e["detail"] for e in step["events"] if e["type"] == _DELIVERED]
            participant.core.on_deadline(self.case["steps"][-1]["now"])
            participant.take()
            if difference := self._compare_deliveries(participant, set(expected)):
                return f"participant {letter}: {difference}"
        return None

    def _perform(self, core: SdsProtocol, step: Any) -> None:
        now_ms = step["now"]
        match step["op"]:
            case "send":
                self._send(core, step)
            case "ephemeral":
                core.send_ephemeral(bytes.fromhex(step["payload"]), now_ms)
            case "sync":
                core.send_sync(now_ms, message_id=self._sync_id(step))
            case "receive":
                hint = optional_hex(step.get("retrieval_hint"))
                core.receive(self.wires[step["message"]], now_ms, retrieval_hint=hint)
            case "sweep_incoming":
                inside.sweeps(core).sweep_incoming(now_ms)  # in js-waku an operation of its own
            case "sweep_repair":
                inside.sweeps(core).sweep_repair(now_ms)
            case "sweep_outgoing":
                pass  # js-waku's reports only; the outgoing buffer is compared at every step
            case other:
                raise ValueError(f"unknown op {other!r}")

    def _send(self, core: SdsProtocol, step: Any) -> None:
        now_ms, content = step["now"], bytes.fromhex(step["payload"])
        message_id = js_waku_id("", 0, content)
        if message_id in core.outgoing_buffer.entries:
            core.resend(message_id, now_ms)
        else:
            core.send(content, now_ms)
        if step["callback"] == "ok":
            core.dispatched(message_id, now_ms, optional_hex(step.get("retrieval_hint")))

    def _sync_id(self, step: Any) -> str:
        return self.messages[step["sent"][0]].message_id if step["sent"] else "sync-opaque"

    def _perform_delivery(self, core: SdsProtocol, step: Any) -> None:
        if step["op"] == "send":
            # An own message of the recording: its bytes were made by a js-waku whose log differed.
            for label in step["sent"]:
                _adopt_own(core, self.messages[label])
        elif step["op"] in ("receive", "sweep_incoming"):
            self._perform(core, step)

    def _compare(self, participant: Participant, step: Any) -> str | None:
        core, state = participant.core, step["state"]
        known = participant.known
        sent, observed = participant.take()
        if step.get("callback") == "none":
            sent = []  # js-waku was given nothing to send with
        log = [[entry.message_id, str(entry.lamport_timestamp)] for entry in core.log]
        recorded = {
            f"{e['type']} {e['detail']}"
            for e in step["events"]
            if e["type"] in _OBSERVED and not (e["type"] == _DELIVERED and e["detail"] in known)
        }
        participant.known = {entry.message_id for entry in core.log}
        return first_difference(
            [
                ("sent", sent, [self.wires[label] for label in step["sent"]]),
                ("log", log, state["history"]),
                ("lamport", str(core.clock.value), state["lamport"]),
                (
                    "outgoing buffer",
                    sorted(core.outgoing_buffer.entries),
                    sorted(state["outgoing_buffer"]),
                ),
                ("events", sorted(observed), sorted(recorded)),
            ]
        )

    def _compare_deliveries(self, participant: Participant, expected: set[str]) -> str | None:
        delivered = participant.delivered
        if twice := {i for i in delivered if delivered.count(i) > 1}:
            return f"delivered twice: {sorted(twice)}"
        if absent := expected - set(delivered):
            return f"js-waku delivered and this did not: {sorted(absent)}"
        position = {message_id: i for i, message_id in enumerate(delivered)}
        for message in self.messages.values():
            for dependency in message.causal_ids:
                if position.get(dependency, -1) > position.get(message.message_id, len(delivered)):
                    return f"{dependency} was delivered after its dependant {message.message_id}"
        return None


def _adopt_own(core: SdsProtocol, message: Message) -> None:
    """Put an own recorded message into log and filter, as sending it did."""
    assert message.lamport_timestamp is not None and message.content is not None
    if message.message_id not in core.log:
        core.bloom_filter.insert(message.message_id)
        entry = LogEntry(
            message.message_id, message.sender_id, message.lamport_timestamp, message.content
        )
        core.log.insert(entry)


def _core(setup: Any) -> SdsProtocol:
    options = setup["options"]
    repair = options.get("repairConfig", {})
    return SdsProtocol(
        setup["channel_id"],
        setup["sender_id"],
        now_ms=setup["created_at"],
        random=lambda: 0.5,
        id_function=js_waku_id,
        options=SdsOptions(
            causal_history_size=options.get("causalHistorySize", 200),
            possible_acks_threshold=options.get("possibleAcksThreshold", 2),
            timeout_for_lost_messages_ms=options.get("timeoutForLostMessagesMs", 0),
            max_lamport_ahead_ms=2**64,  # js-waku knows no bound (D10)
            repair=RepairOptions(
                enabled=options.get("enableRepair", True),
                t_min_ms=repair.get("tMin", 30_000),
                t_max_ms=repair.get("tMax", 120_000),
                num_response_groups=repair.get("numResponseGroups", 1),
                buffer_size=repair.get("bufferSize", 1_000),
                max_request_attempts=1,
            ),
            behaviour=JS_WAKU,
        ),
    )
