"""Deprecated hooks, removed in 0.3: they ask every plugin for every URL and name.

Each has a successor in `hooks.py`, with which a plugin registers what it provides.
"""

from typing import TYPE_CHECKING, Any

from .hooks import hookspec

if TYPE_CHECKING:
    from .events import Event
    from .sync_core import CoreContext
    from .transport import WakuSettings


def _until(old: str, new: str) -> DeprecationWarning:
    return DeprecationWarning(
        f"the hook {old} will be removed in 0.3; implement {new}(register) instead "
        "(docs/plugins.md, 'Deprecated hooks')"
    )


class OldHooks:
    """What a plugin could implement before it registered."""

    @hookspec(warn_on_impl=_until("make_transport", "register_transports"))
    def make_transport(
        self, url: str, channel_id: str, sender_id: str, settings: "WakuSettings"
    ) -> Any:
        """Return the transport of a URL, or None."""

    @hookspec(warn_on_impl=_until("make_state_store", "register_state_stores"))
    def make_state_store(self, url: str, channel_id: str, sender_id: str) -> Any:
        """Return the state store of a URL, or None."""

    @hookspec(warn_on_impl=_until("make_encryption", "register_encryptions"))
    def make_encryption(self, url: str, channel_id: str, sender_id: str) -> Any:
        """Return the encryption of a URL, or None."""

    @hookspec(warn_on_impl=_until("make_sync_core", "register_sync_cores"))
    def make_sync_core(self, protocol: str, setting: "CoreContext") -> Any:
        """Return the core of a sync protocol, or None."""

    @hookspec(warn_on_impl=_until("make_repair_policy", "register_repair_policies"))
    def make_repair_policy(self, name: str) -> Any:
        """Return the repair policy of a name, or None."""

    @hookspec(warn_on_impl=_until("make_retry_policy", "register_retry_policies"))
    def make_retry_policy(self, name: str) -> Any:
        """Return the retry policy of a name, or None."""

    @hookspec(warn_on_impl=_until("make_id_function", "register_id_functions"))
    def make_id_function(self, name: str) -> Any:
        """Return the id function of a name, or None."""

    @hookspec(warn_on_impl=_until("make_wire_profile", "register_wire_profiles"))
    def make_wire_profile(self, name: str) -> Any:
        """Return the wire profile of a name, or None."""

    @hookspec(warn_on_impl=_until("observe", "register_observers"))
    def observe(self, channel_id: str, sender_id: str, event: "Event", at_ms: int) -> None:
        """Observe an event of a channel."""
