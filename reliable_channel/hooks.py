"""The plugin manual: what a plugin may do, hook by hook. `docs/plugins.md` leads from nothing to a
published plugin.

A plugin is a module or an object with functions of these names, each marked with
`@reliable_channel.hooks.hookimpl`, which take those of the arguments that they name. It is found
where its distribution has an entry point in the group `reliable_channel`, or is given to one
channel with `ReliableChannel(..., plugins=[...])`. What the SDK does by itself fills the same
hooks, but for its own commands, which work whatever plugins do.

Every hook is a plain function, called in the thread that it says: one that hangs, hangs its caller
(the trace shows which), and one that takes a second is named in a warning or an event.
One that raises, or returns what it may not, is named: where an answer is needed that is a
`PluginError`, elsewhere the plugin is set aside and the rest goes on. Two plugins that answer for
the same URL or name are an error, too. `RELIABLE_CHANNEL_PLUGINS` names the installed plugins to
load (empty or `none`: none); `RELIABLE_CHANNEL_TRACE_PLUGINS=1` prints each call on standard error.
"""

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import typer

    from .encryption import Encryption
    from .events import Event
    from .policies import IdFunction, RepairPolicy, RetryPolicy
    from .state import StateStore
    from .sync_core import SyncCore, SyncSetting
    from .transport import Transport, WakuSettings
    from .wire_profile import WireProfile

PROJECT = "reliable_channel"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Hooks:
    """What a plugin may implement."""

    @hookspec
    def make_transport(
        self, url: str, channel_id: str, sender_id: str, settings: "WakuSettings"
    ) -> "Transport | None":
        """Return the transport of a node's URL, or None where its scheme is not yours.

        Called for each URL of a channel when the channel is made, and again when it is opened a
        second time, in the channel's thread: must not block and do no I/O, which is for the
        transport's `open`. Of the settings a transport without Waku needs `content_topic`, which
        keeps channels apart, and `shard`, where it hashes as Waku does. Whatever the transport
        raises later but a `TransportError` ends the channel with a `PluginError`.
        `reliable_channel.testing.transport_suite` tests what a transport must do.

        Raises:
            ValueError: the scheme is yours and the rest is wrong; the text says what is allowed.
        """

    @hookspec
    def make_state_store(self, url: str, channel_id: str, sender_id: str) -> "StateStore | None":
        """Return the store of a state URL, or None where its scheme is not yours.

        Called once for each channel that is made with `state=`, in the channel's thread: must not
        block and do no I/O, which is for the store's `open`.

        Raises:
            ValueError: the scheme is yours and the rest is wrong; the text says what is allowed.
        """

    @hookspec
    def make_encryption(self, url: str, channel_id: str, sender_id: str) -> "Encryption | None":
        """Return what seals the channel, or None where the URL's scheme is not yours.

        Called once for each channel that is made with `encryption=` as a text (`--encryption`), in
        the channel's thread. May read a small file, such as a key; the URL itself must hold no
        secret, as command lines are seen by others.

        Raises:
            ValueError: the scheme is yours and the rest is wrong; the text says what is allowed.
        """

    @hookspec
    def make_sync_core(self, protocol: str, setting: "SyncSetting") -> "SyncCore | None":
        """Return the core of a sync protocol, or None where you do not know its name.

        Called once each time a channel is opened, with the name given as `sync=`; must not block
        and do no I/O, as the core itself never does. `sync_core.py` says what is asked of it.
        """

    @hookspec
    def make_repair_policy(self, name: str) -> "RepairPolicy | None":
        """Return the repair policy of a name, or None where the name is not yours.

        Called once for each channel, with the name given as `retrieval_strategy=`, in the channel's
        thread: must not block and do no I/O. The policy is a pure function, called for each missing
        message in the channel's event loop and in simulations (`repair_policies.py` says when, and
        what it is shown); what it raises ends the channel with a `PluginError`.
        """

    @hookspec
    def make_retry_policy(self, name: str) -> "RetryPolicy | None":
        """Return the retry policy of a name, or None where the name is not yours.

        Called once for each channel that is made with `retry_policy=` as a text, in the channel's
        thread: must not block and do no I/O. The policy is a pure function, called in the channel's
        event loop and in simulations; what it raises ends the channel with a `PluginError`.
        """

    @hookspec
    def make_id_function(self, name: str) -> "IdFunction | None":
        """Return what makes message ids by a name, or None where the name is not yours.

        Called once for each channel that is made with `id_function=` as a text, in the channel's
        thread: must not block and do no I/O. Ids must be unique in the channel. The function is
        called in `send`, which raises a `PluginError` where it fails.
        """

    @hookspec
    def make_wire_profile(self, name: str) -> "WireProfile | None":
        """Return the wire profile of that name, a dialect of SDS, or None where the name is not
        yours.

        Called once for each channel, with the name given as `wire_profile=`, in the channel's
        thread: must not block and do no I/O. Its codec, clock, bloom form and formulas are pure and
        are called for each message; a codec raises `CodecError` for bytes that are no message, and
        whatever else they raise ends the channel with a `PluginError`. The channel sends this
        dialect and understands it beside those that come along: `recognises` must not claim the
        messages of others. `reliable_channel.wire_profile` has what it takes to make one.
        """

    @hookspec
    def observe(self, channel_id: str, sender_id: str, event: "Event", at_ms: int) -> None:
        """See an event of a channel, at the time when it is told.

        Called for every event in its order, in the channel's event loop, after what led to it is on
        disk (`state=`) and before the application can read it: must not block, do no I/O and not
        call the channel; hand the event to a queue, and a thread or task of yours. Must return
        None. Who raises or returns something is set aside for the rest of the channel's life and
        named in an `observer_set_aside` event.
        """

    @hookspec
    def register_commands(self, app: "typer.Typer") -> None:
        """Add commands to `reliable-channel`.

        Called once, when the command line starts, whatever the command is: must not block and do no
        I/O; import what a command needs inside of it. A name that is taken stays with who took it.
        Who raises is named on standard error, and the command line does without.
        """
