"""Factory of the parts of a participant, by LIP 109 or, with `self_tuning`, tuned."""

from .delivery import Delivery
from .receiving import Receiver
from .search import ReferenceSearch
from .sending import Sender
from .state import ChannelState, Setup
from .sweeps import Sweeps


def make_parts(setup: Setup) -> tuple[ChannelState, Sender, Receiver, Sweeps]:
    """Make the sender, receiver and sweeps of a participant, which share its state."""
    if setup.options.self_tuning:
        from .adaptive import reconciling, tuned  # most channels do without

        has_fields = not setup.profile.refers_to_syncs
        return reconciling.make_parts(setup) if has_fields else tuned.make_parts(setup)
    state = ChannelState(setup)
    delivery, sender = Delivery(state), Sender(state)
    references = ReferenceSearch(state, delivery)
    receiver = Receiver(state, delivery, references)
    return state, sender, receiver, Sweeps(state, delivery, references, sender)
