"""A core that does not keep to the table of message states is found."""

from collections.abc import Callable

import pytest

from reliable_channel.sds import SdsProtocol
from reliable_channel.sds.delivery import Delivery
from reliable_channel.sds.profile import SPEC
from reliable_channel.sds.references.incoming import ArrivedMessage, IncomingBuffer
from reliable_channel.sds.references.queued import QueuedReferences
from reliable_channel.sds.states import checking
from reliable_channel.sds.states_of import IllegalTransition, TransitionCheck
from tests import inside

from .test_states import NOW_MS, message, participant, queued_by_an_evicted_message


def dropped_with_its_carrier(self: IncomingBuffer, batch: object) -> list[str]:
    self.queued.drop(batch)  # type: ignore[arg-type]
    return []


def delivered_twice(core: SdsProtocol) -> None:
    arrived = ArrivedMessage(SPEC.codec.decode(message("m1")), message("m1"), None)
    Delivery(inside.state(core)).deliver(arrived)


def test_a_message_that_is_delivered_twice_is_found() -> None:
    core = participant()
    core.receive(message("m1"), NOW_MS)
    with pytest.raises(IllegalTransition, match=r"'m1' was delivered .* COMPLETE .* no such step"):
        delivered_twice(core)


def test_a_message_that_waits_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IncomingBuffer, "_drop_batch", dropped_with_its_carrier)
    with pytest.raises(
        IllegalTransition, match=r"is forgotten .*, although a parked message waits for"
    ):
        queued_by_an_evicted_message()


@pytest.mark.parametrize(
    ("place", "name", "defect", "text"),
    [
        (
            IncomingBuffer,
            "arrived",
            lambda self, message_id: None,
            "is delivered, but the buffer still lists it as missing or parked",
        ),
        (Delivery, "_log", lambda self, parked: None, "is unknown after COMPLETE"),
        (QueuedReferences, "add", lambda self, batch: None, "is unknown after REFERENCE_QUEUED"),
    ],
)
def test_a_planted_defect_is_found(
    monkeypatch: pytest.MonkeyPatch,
    place: type,
    name: str,
    defect: Callable[..., None],
    text: str,
) -> None:
    core = participant()
    core.receive(message("m2", "m1", at_ms=2), NOW_MS)
    monkeypatch.setattr(place, name, defect)
    with pytest.raises(IllegalTransition, match=text):
        core.receive(message("m1", at_ms=1), NOW_MS)
        core.receive(message("m9", *(f"x{n}" for n in range(300)), at_ms=9), NOW_MS)


def test_the_check_is_a_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reliable_channel.sds.states.check_transitions", False)
    core = participant()
    core.receive(message("m1"), NOW_MS)
    delivered_twice(core)
    with checking():
        assert isinstance(inside.state(participant()).on_transition, TransitionCheck)
