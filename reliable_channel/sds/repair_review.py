"""What others ask for (SDS-R, When RECEIVING a Message with repair requests)."""

from typing import Final

from .events import RepairRequestReceived
from .ids import RecentIds
from .message import Message
from .state import ChannelState

REVIEWED: Final = 10_000
"""Requests that are remembered; older repetitions are reviewed again, within the budget."""


class RepairReview:
    """Reads the repair requests of received messages."""

    def __init__(self, state: ChannelState) -> None:
        self._state = state
        self._reviewed = RecentIds(REVIEWED)

    def review(self, message: Message, now_ms: int) -> None:
        """Plan answers to what is held here, and put off what we would have asked for, too.

        A repetition asks for nothing: else a replay would have all participants answer again.
        """
        state, requester = self._state, message.sender_id
        asked = tuple(entry.message_id for entry in message.repair_request)
        # Not by the carrier's id alone: whoever took that first would silence the honest one.
        request = f"{hash((message.message_id, requester, asked)):x}"
        if request in self._reviewed:
            return
        self._reviewed.add(request)
        state.emit(RepairRequestReceived(asked, requester))
        for entry in message.repair_request:
            message_id = entry.message_id
            if entry.sender_id:  # nobody may answer one without
                state.repair_requests.requested_by_other(message_id, now_ms, requester)
            delivered = message_id in state.log or message_id in state.referable_syncs
            if state.tuner is not None and state.tuner.is_on_air(message_id, now_ms):
                continue
            if delivered and (data := state.held(message_id)) is not None:
                state.repair_responses.request(entry, now_ms, requester, len(data))
        if reached := state.repair_responses.budget.reached(requester, now_ms):
            state.emit(reached)
