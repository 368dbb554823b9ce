"""The plugin manual: the hooks, when each runs, and what a plugin may do in it.

A plugin is a module or an object with functions of these names, each marked with
`@reliable_channel.spi.hookimpl`. It is found where its distribution has an entry point in the
group `reliable_channel`, or is given to one channel with `ReliableChannel(..., plugins=[...])`.
The SDK's own transports, stores, profiles and policies are registered through the same hooks.
`docs/plugins.md` is the guide, from an empty directory to a published plugin.

**When the hooks run.** All of them run once, when the plugin is loaded: at the first channel of the
process, or at the channel that the plugin is given to, in that thread. They must not block and do
no I/O; they only name what the plugin provides.

**Registering.** `register(name, provided)` adds one thing under a name. `provided` is the object,
or the text `"package.module:name"` of an object that is imported when it is first used. Prefer the
text: then a process does not import what it does not use. A registered function takes those of the
offered arguments that it names. A name has one owner: when two plugins register the same name,
loading the second raises a `PluginError` with both.

**URL schemes.** A function that is registered by URL scheme runs in the channel's thread, must not
block and do no I/O, which belongs into `open` of the object that it returns. It raises `ValueError`
for a malformed URL, with the allowed form in its text.

**Failures.** While a plugin is loaded or a channel is made, an error of its code becomes a
`PluginError` that names the plugin. Later an error keeps its type, gets a note with the plugin's
name, and ends the channel. Only a transport's `publish` and `by_hash` have a time limit.

`RELIABLE_CHANNEL_PLUGINS` names the installed plugins to load (empty or `none`: none);
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
    """What a plugin may implement."""

    @hookspec
    def register_transports(self, register: Register) -> None:
        """Register transports by URL scheme: `register("pigeon", PigeonTransport)`.

        Registered is a function that returns a `Transport`. It runs for each URL of the scheme when
        a channel is made, and again each time the channel is opened again; it is offered `url`,
        `channel_id`, `sender_id` and `settings`. Of the settings, a transport without Waku needs
        `content_topic`, which separates channels, and `shard` if it hashes as Waku does. An error
        of the transport that is not a `TransportError` ends the channel.
        `reliable_channel.testing.transport_suite` tests a transport.
        """

    @hookspec
    def register_state_stores(self, register: Register) -> None:
        """Register state stores by URL scheme: `register("redis", "my_package.store:open_store")`.

        Registered is a function that returns a `StateStore`. It runs once for each channel with
        `state=` of the scheme; it is offered `url`, `channel_id` and `sender_id`.
        """

    @hookspec
    def register_encryptions(self, register: Register) -> None:
        """Register encryptions by URL scheme: `register("aes-256-gcm", "my_package:from_url")`.

        Registered is a function that returns an `Encryption`. It runs once for each channel with
        `encryption=` as a text of the scheme (`--encryption`); it is offered `url`, `channel_id`
        and `sender_id`, and may read a small file, such as a key. The URL itself must not contain a
        secret, because command lines are visible to others.
        """

    @hookspec
    def register_sync_cores(self, register: Register) -> None:
        """Register sync protocols by name: `register("mvds", "my_package.core:MvdsCore")`.

        Registered is a function that returns a `SyncCore` (`sync_core.py` is its contract). It runs
        each time a channel with `sync=` of the name is opened; it is offered `context`, must not
        block and do no I/O, like the core itself.
        """

    @hookspec
    def register_wire_profiles(self, register: Register) -> None:
        """Register dialects of SDS by name: `register("mine", "my_package.profile:MINE")`.

        Registered is a `WireProfile` of the same name. It runs for each message of a channel with
        `wire_profile=` of the name: its codec, clock, bloom form and formulas are pure. A codec
        raises `CodecError` for bytes that are not a message; any other error ends the channel. The
        channel sends this dialect and decodes the built-in ones beside it, so `recognises` must not
        accept their messages.
        """

    @hookspec
    def register_repair_policies(self, register: Register) -> None:
        """Register repair policies by name, for `retrieval_strategy=`.

        Registered is the `RepairPolicy` itself, a pure function. It runs for each missing message
        in the channel's event loop and in simulations; `repair_policies.py` says when, and what it
        is given.
        """

    @hookspec
    def register_retry_policies(self, register: Register) -> None:
        """Register retry policies by name, for `retry_policy=`.

        Registered is the `RetryPolicy` itself, a pure function. It runs in the channel's event loop
        and in simulations, each time an unacknowledged message was sent.
        """

    @hookspec
    def register_id_functions(self, register: Register) -> None:
        """Register functions that make message ids by name, for `id_function=`.

        Registered is the `IdFunction` itself. It runs in `send`, which passes on its errors. Ids
        must be unique in the channel, with 1 to 1,024 characters.
        """

    @hookspec
    def register_observers(self, register: Register) -> None:
        """Register observers of all events: `register("tally", count)`.

        Registered is a function. It runs for each event of each channel, in order, in the channel's
        event loop, after the changes behind the event are on disk (`state=`) and before the
        application can read it; it is offered `channel_id`, `sender_id`, `event`, `at_ms`, and
        `health`, the channel's method (keep a weak reference at most). It must not block, do no I/O
        and not call the channel otherwise: pass the event to a queue that a thread or task of yours
        reads. An observer that raises is dropped for the rest of the
        channel's life; an `observer_set_aside` event names it.
        """

    @hookspec
    def register_checks(self, register: Register) -> None:
        """Register checks of `reliable-channel doctor`: `register("loft", "my_package:check")`.

        Registered is a function that returns a list of `reliable_channel.spi.Finding`, empty where
        nothing of the plugin's is configured. It runs once in each `reliable-channel doctor`, after
        the doctor's own examinations and outside any event loop, so it may block, do I/O and call
        `anyio.run`; it ends by itself, and changes nothing. It is offered `nodes`, the addresses
        that the doctor was given, and `config`, the path of its TOML file or None. Each finding
        says what to do. A check that raises is a finding that names the plugin.
        """

    @hookspec
    def register_commands(self, app: "typer.Typer") -> None:
        """Add commands to `reliable-channel`.

        Runs each time the command line starts, for any command: must not block and do no
        I/O; import what a command needs inside of it. A name that is taken stays with its owner,
        and a warning names both. A plugin that raises is named on standard error, and the command
        line does without its commands.
        """
