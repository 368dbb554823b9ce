"""The plugin manual: the hooks, when each runs, and what a plugin may do in it.

A plugin is a module or an object with functions of these names, each marked with
`@reliable_channel.spi.hookimpl`. Its distribution has an entry point in the group
`reliable_channel`. Or one channel receives it with `ReliableChannel(..., plugins=[...])`.
The SDK's own transports, stores, profiles and policies are registered through the same hooks.
`docs/plugins.md` is the guide, from an empty directory to a published plugin.

**When the hooks run.** All of them run once, when the plugin is loaded: at the first channel of the
process, or at the channel that the plugin is given to, in that thread. They must not block or do
I/O. They only name the objects of the plugin.

**Registering.** `register(name, provided)` adds one thing under a name. `provided` is the object,
or the text `"package.module:name"` of an object that is imported when it is first used. Prefer the
text: then a process does not import what it does not use. A registered function receives those of
the offered arguments that it names. A name has one owner: when two plugins register the same name,
loading the second raises a `PluginError` with both.

**URL schemes.** A function for a URL scheme runs in the channel's thread and must not block or do
I/O. I/O belongs into `open` of the returned object. The function raises
`ValueError` for a malformed URL, with the allowed form in its text.

**Failures.** While a plugin is loaded or a channel is created, its errors become a `PluginError`
with its name. Later an error keeps its type, gets a note with the plugin's
name, and ends the channel. Only a transport's `publish` and `by_hash` have a time limit.

`RELIABLE_CHANNEL_PLUGINS` names the installed plugins to load (empty or `none`: none).
`RELIABLE_CHANNEL_TRACE_PLUGINS=1` prints each call on standard error.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pluggy

if TYPE_CHECKING:
    import typer

PROJECT = "reliable_channel"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


Register: TypeAlias = Callable[[str, object], None]
"""Function that adds one thing: its name, and the object or `"package.module:name"` of it. Raises
`PluginError` if the name or the object is not of the form that the hook demands."""


class Hooks:
    """Hooks that a plugin may implement."""

    @hookspec
    def register_transports(self, register: Register) -> None:
        """Register transports by URL scheme: `register("pigeon", PigeonTransport)`.

        The registered function returns a `Transport`. It runs for each URL of the scheme when a
        channel is created or opened again. It is offered `url`,
        `channel_id`, `sender_id` and `settings`. A transport without Waku needs
        `settings.content_topic`, which separates channels, and `shard` for Waku's hashes. An error
        of the transport that is not a `TransportError` ends the channel.
        `reliable_channel.testing.transport_suite` tests a transport.
        """

    @hookspec
    def register_state_stores(self, register: Register) -> None:
        """Register state stores by URL scheme: `register("redis", "my_package.store:open_store")`.

        The registered function returns a `StateStore`. It runs once for each channel with `state=`
        of the scheme. It is offered `url`, `channel_id` and `sender_id`.
        """

    @hookspec
    def register_encryptions(self, register: Register) -> None:
        """Register encryptions by URL scheme: `register("aes-256-gcm", "my_package:from_url")`.

        The registered function returns an `Encryption`. It runs once for each channel with a URL of
        the scheme in `encryption=` (`--encryption`). It is offered `url`, `channel_id` and
        `sender_id`, and may read a small file, such as a key. The URL must not contain a secret,
        because command lines are visible to others.
        """

    @hookspec
    def register_sync_cores(self, register: Register) -> None:
        """Register sync protocols by name: `register("mvds", "my_package.core:MvdsCore")`.

        The registered function returns a `SyncCore` (`sync_core.py` is its contract). It runs each
        time a channel with `sync=` of the name is opened. It is offered `context`, and must not
        block or do I/O, like the core.
        """

    @hookspec
    def register_wire_profiles(self, register: Register) -> None:
        """Register dialects of SDS by name: `register("mine", "my_package.profile:MINE")`.

        The registered object is a `WireProfile` of the same
        name. It runs for each message of a channel with
        `wire_profile=` of the name: its codec, clock, bloom form and formulas are pure. A codec
        raises `CodecError` for bytes that are not a message. Any other error ends the channel. The
        channel sends this dialect and decodes the built-in ones beside it, so `recognises` must not
        accept their messages.
        """

    @hookspec
    def register_repair_policies(self, register: Register) -> None:
        """Register repair policies by name, for `retrieval_strategy=`.

        The registered object is the `RepairPolicy` itself, a pure function. It runs for each
        missing message in the channel's event loop and in simulations. `repair_policies.py`
        describes its argument.
        """

    @hookspec
    def register_retry_policies(self, register: Register) -> None:
        """Register retry policies by name, for `retry_policy=`.

        The registered object is the `RetryPolicy` itself, a pure
        function. It runs in the channel's event loop
        and in simulations, each time an unacknowledged message was sent.
        """

    @hookspec
    def register_id_functions(self, register: Register) -> None:
        """Register functions that make message ids by name, for `id_function=`.

        The registered object is the `IdFunction`
        itself. It runs in `send`, which passes on its errors. Ids
        must be unique in the channel, with 1 to 1,024 characters.
        """

    @hookspec
    def register_observers(self, register: Register) -> None:
        """Register observers of all events: `register("tally", count)`.

        The registered function runs for each event of each channel, in order, in the channel's
        event loop. It runs after the changes are on disk (`state=`) and before the application
        reads the event. It is offered `channel_id`, `sender_id`, `event`, `at_ms`, and `health`,
        the channel's method (keep at most a weak reference). It must not block, do I/O or call
        other methods of the channel. Pass the event to a queue of your own thread or task. An
        observer that raises is dropped, and an `observer_set_aside` event names it.
        """

    @hookspec
    def register_checks(self, register: Register) -> None:
        """Register checks of `reliable-channel doctor`: `register("loft", "my_package:check")`.

        The registered function returns a list of `reliable_channel.spi.Finding` (empty if the
        plugin is not configured). It runs once in each `reliable-channel doctor`, after the
        doctor's own checks and outside any event loop. So it may block, do I/O and call
        `anyio.run`, but must end and change nothing. It is offered `nodes`, the addresses of the
        doctor, and `config`, the path of its TOML file or None. Each finding gives advice. A check
        that raises becomes a finding with the plugin's name.
        """

    @hookspec
    def register_commands(self, app: "typer.Typer") -> None:
        """Add commands to `reliable-channel`.

        The hook runs each time the command line starts, for any command, and must not block or do
        I/O. Import the modules of a command inside of it. A taken name stays with its owner, and a
        warning names both. A plugin that raises is named on standard error, and its commands are
        left out.
        """
