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

**Failures.** All code of a plugin runs under one guard (`guard.py`). A hook, a registered function
or an object that raises, returns something else than its contract says, or hangs, raises a
`PluginError` with the plugin's name; a plugin's commands and observers are dropped, and the rest
goes on. A call of a second or more is named in a warning or an event.

`RELIABLE_CHANNEL_PLUGINS` names the installed plugins to load (empty or `none`: none);
`RELIABLE_CHANNEL_TRACE_PLUGINS=1` prints each call on standard error.
"""

from typing import TYPE_CHECKING, Protocol

import pluggy

if TYPE_CHECKING:
    import typer

PROJECT = "reliable_channel"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Register(Protocol):
    """What a hook is given to register with."""

    def __call__(self, name: str, provided: object) -> None:
        """Add one thing: the object, or `"package.module:name"` of it.

        Raises:
            PluginError: the name or the object is not of the form that the hook demands.
        """
        ...


class Hooks:
    """What a plugin may implement."""

    @hookspec
    def register_transports(self, register: Register) -> None:
        """Register transports by URL scheme: `register("pigeon", PigeonTransport)`.

        Registered is a function that returns a `Transport`. It runs for each URL of the scheme when
        a channel is made, and again each time the channel is opened again, in the channel's thread;
        it is offered `url`, `channel_id`, `sender_id` and `settings`, must not block and do no
        I/O: I/O belongs into the transport's `open`. It raises `ValueError` for a malformed URL,
        with the allowed form in its text. Of the settings, a transport without Waku needs
        `content_topic`, which separates channels, and `shard` if it hashes as Waku does. An error
        of the transport that is not a `TransportError` ends the channel with a `PluginError`.
        `reliable_channel.testing.transport_suite` tests a transport.
        """

    @hookspec
    def register_state_stores(self, register: Register) -> None:
        """Register state stores by URL scheme: `register("redis", "my_package.store:open_store")`.

        Registered is a function that returns a `StateStore`. It runs once for each channel with
        `state=` of the scheme, in the channel's thread; it is offered `url`, `channel_id` and
        `sender_id`, must not block and do no I/O: I/O belongs into the store's `open`. It raises
        `ValueError` for a malformed URL, with the allowed form in its text.
        """

    @hookspec
    def register_encryptions(self, register: Register) -> None:
        """Register encryptions by URL scheme: `register("aes-256-gcm", "my_package:from_url")`.

        Registered is a function that returns an `Encryption`. It runs once for each channel with
        `encryption=` as a text of the scheme (`--encryption`), in the channel's thread; it is
        offered `url`, `channel_id` and `sender_id`, and may read a small file, such as a key. The
        URL itself must not contain a secret, because command lines are visible to others. It raises
        `ValueError` for a malformed URL, with the allowed form in its text.
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

        Registered is a `WireProfile` of the same name. It is checked once for each channel with
        `wire_profile=` of the name: a message is encoded and decoded. Its codec, clock, bloom form
        and formulas are pure and run for each message. A codec raises `CodecError` for bytes that
        are not a message; any other error ends the channel with a `PluginError`. The channel sends
        this dialect and decodes the built-in ones beside it, so `recognises` must not accept
        their messages. `reliable_channel.wire_profile` has the parts of a profile.
        """

    @hookspec
    def register_repair_policies(self, register: Register) -> None:
        """Register repair policies by name, for `retrieval_strategy=`.

        Registered is the `RepairPolicy` itself, a pure function. It runs for each missing message
        in the channel's event loop and in simulations (`repair_policies.py` says when, and what it
        is given). An error of it ends the channel with a `PluginError`.
        """

    @hookspec
    def register_retry_policies(self, register: Register) -> None:
        """Register retry policies by name, for `retry_policy=`.

        Registered is the `RetryPolicy` itself, a pure function. It runs in the channel's event loop
        and in simulations, each time an unacknowledged message was sent. An error of it ends the
        channel with a `PluginError`.
        """

    @hookspec
    def register_id_functions(self, register: Register) -> None:
        """Register functions that make message ids by name, for `id_function=`.

        Registered is the `IdFunction` itself. It runs in `send`, which raises a `PluginError` if it
        fails. Ids must be unique in the channel.
        """

    @hookspec
    def register_observers(self, register: Register) -> None:
        """Register observers of all events: `register("tally", count)`.

        Registered is a function that returns None. It runs for each event of each channel, in
        order, in the channel's event loop, after the changes behind the event are on disk
        (`state=`) and before the application can read it; it is offered `channel_id`, `sender_id`,
        `event`, `at_ms`, and `health`, the channel's method (keep a weak reference at most). It
        must not block, do no I/O and not call the channel otherwise: pass the event to a queue that
        a thread or task of yours reads. An observer that raises, or returns something, is dropped
        for the rest of the channel's life; an `observer_set_aside` event names it.
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
