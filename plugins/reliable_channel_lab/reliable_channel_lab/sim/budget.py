"""Judge of the rate limit, which checks each epoch's budget and that content is sent first."""

from collections import Counter
from typing import Final

from reliable_channel.options import ChannelOptions
from reliable_channel.sds.events import Outgoing, OutgoingKind

from .ledger import Fail

KEPT: Final = "the rate limit is kept"
YIELD: Final = "the application's own messages go first"
APPROACHED: Final = 0.9


class Spending:
    """Messages that one participant published, also after restarts, by the epochs of its clock."""

    def __init__(self, options: ChannelOptions, fail: Fail) -> None:
        self._budget = options.rate_limit.messages_per_epoch
        self._period_ms = options.rate_limit.epoch_period_s * 1_000
        self._is_enabled = options.rate_limit.enabled
        self._fail = fail
        self._spent: Counter[int] = Counter()

    def forget(self) -> None:
        """Note that the participant's disk lost the record of the spent budget."""
        self._spent.clear()

    def published(self, outgoing: Outgoing, now_ms: int) -> None:
        if not self._is_enabled:
            return
        epoch = now_ms // self._period_ms
        before, self._spent[epoch] = self._spent[epoch], self._spent[epoch] + 1
        if before >= self._budget:
            detail = f"{before + 1} messages in an epoch of {self._budget}"
            self._fail(KEPT, outgoing.message_id, detail)
        if outgoing.kind is not OutgoingKind.CONTENT and before >= APPROACHED * self._budget:
            detail = f"a {outgoing.kind.value} goes out after {before} of {self._budget}"
            self._fail(YIELD, outgoing.message_id, detail)
