"""What plugins may do, and what becomes of those that misbehave."""

import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import EntryPoint
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
import typer
from typer.testing import CliRunner

from reliable_channel import MessageReceived, MessageSent, ReliableChannel
from reliable_channel._contracts import plugin_code
from reliable_channel._contracts.encryption import EncryptionPair
from reliable_channel._contracts.plugin_code import Owner
from reliable_channel._plugins.hooks import PROJECT, Hooks, Register, hookimpl
from reliable_channel._plugins.loading import BUILT_IN, installed, process_registry, registry_with
from reliable_channel._plugins.registry import Kind
from reliable_channel._plugins.transport import PluginTransport
from reliable_channel.cli.main import COMMANDS, PACKAGES, command_line
from reliable_channel.cli.plugin_commands import commands_of_plugins
from reliable_channel.diagnostics import NodeHealthChanged, ObserverSetAside, ObserverSlow, SyncSent
from reliable_channel.errors import PluginError
from reliable_channel.events import AnyEvent
from reliable_channel.health import ChannelHealth
from reliable_channel.runtime import Observers
from reliable_channel.state import MemoryStateStore
from reliable_channel.transport import (
    Envelope,
    MemoryNetwork,
    MemoryTransport,
    Received,
    StoreUnavailable,
    Transport,
    TransportError,
)
from tests.channel.world import listening, now_ns


@pytest.fixture
def fresh() -> Iterator[None]:
    """A test that changes what is installed, and leaves nothing of it behind."""
    process_registry.cache_clear()
    yield
    process_registry.cache_clear()


def channel(node: str = "memory://plugins", **arguments: Any) -> ReliableChannel:
    return ReliableChannel(node, channel_id="general", sender_id="alice", **arguments)


class Pigeons:
    """A plugin with a transport, which counts its calls."""

    def __init__(self, make: Callable[[str], object] | None = None) -> None:
        self.network = MemoryNetwork()
        self.make = make or self.network.transport
        self.asked: list[str] = []

    @hookimpl
    def register_transports(self, register: Register) -> None:
        register("pigeon", self._transport)

    def _transport(self, url: str) -> object:
        self.asked.append(url)
        return self.make(url)


class Watcher:
    def __init__(self, answer: Callable[[], object] = lambda: None) -> None:
        self.events: list[AnyEvent] = []
        self.answer = answer

    @hookimpl
    def register_observers(self, register: Register) -> None:
        register(f"watcher {id(self)}", self._observe)

    def _observe(self, channel_id: str, sender_id: str, event: AnyEvent) -> object:
        assert (channel_id, sender_id) == ("general", "alice")
        self.events.append(event)
        return self.answer()


@pytest.mark.anyio
async def test_a_plugin_of_one_channel_carries_it_and_no_other() -> None:
    pigeons = Pigeons()
    async with channel("pigeon://loft", plugins=[pigeons]) as alice:
        bob = ReliableChannel(
            "pigeon://loft", channel_id="general", sender_id="bob", plugins=[pigeons]
        )
        async with listening(bob) as told:
            await alice.send(b"coo")
            await told.first(MessageReceived)
        assert [node.address for node in alice.statistics().nodes] == ["pigeon://loft"]
    assert pigeons.asked == ["pigeon://loft"] * 2
    with pytest.raises(
        ValueError, match=r"^`node` must be .* http, https, .*memory, .*got 'pigeon://loft"
    ):
        channel("pigeon://loft")


@pytest.mark.anyio
async def test_a_channel_that_is_opened_again_gets_a_transport_of_its_own_again() -> None:
    pigeons = Pigeons()
    alice = channel("pigeon://loft", plugins=[pigeons])
    for _ in range(2):
        async with alice:
            await alice.send(b"coo")
    assert len(pigeons.asked) == 2


def test_a_plugin_that_is_installed_or_given_twice_counts_once(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "pigeons", selection=None)
    pigeons = _plugins["pigeons"]
    assert isinstance(pigeons, Pigeons)
    channel("pigeon://loft", plugins=[pigeons, pigeons])
    assert pigeons.asked == ["pigeon://loft"]


def test_a_scheme_that_is_claimed_twice_names_both() -> None:
    both = r"transport 'pigeon' is registered twice, by 'Pigeons' and by 'Pigeons \(\d\)'; leave "
    with pytest.raises(PluginError, match=both):
        channel("memory://x", plugins=[Pigeons(), Pigeons()])

    class Mine:
        @hookimpl
        def register_transports(self, register: Register) -> None:
            register("memory", MemoryNetwork().transport)

    with pytest.raises(PluginError, match=r"'memory' .* twice, by 'built in' and by 'Mine'"):
        channel("http://127.0.0.1:1", plugins=[Mine()])


def raising(error: Exception) -> Callable[[str], object]:
    def make(url: str) -> object:
        raise error

    return make


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            raising(KeyError("loft")),
            PluginError,
            "^plugin 'Pigeons': transport 'pigeon' failed: KeyError",
        ),
        (raising(ValueError("no loft")), ValueError, "no loft\nplugin 'Pigeons': transport 'pig"),
        (lambda url: url, PluginError, r"must be of type Transport \(got 'pigeon://x'\)"),
        (lambda url: None, PluginError, r"'pigeon' must be of type Transport \(got None\)"),
        (lambda url: MemoryTransport, PluginError, r"must be of type Transport \(got <class"),
    ],
)
def test_a_plugin_that_answers_nonsense_is_named(
    make: Callable[[str], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        channel("pigeon://x", plugins=[Pigeons(make)])


class Sick(MemoryTransport):
    """A transport that does what no transport may."""

    def __init__(self, ill: str, answer: Callable[[], object]) -> None:
        super().__init__(MemoryNetwork())
        self._ill, self._answer = ill, answer

    def __getattribute__(self, name: str) -> Any:
        if name != "envelope" and name == object.__getattribute__(self, "_ill"):
            return self._sick_pages if name == "by_time" else self._sick
        return super().__getattribute__(name)

    async def _sick(self, *arguments: object) -> object:
        return self._answer()

    async def _sick_pages(self, *arguments: object) -> AsyncIterator[object]:
        yield self._answer()

    def envelope(self, payload: bytes, **values: Any) -> Envelope:
        if self._ill == "envelope":
            return self._answer()  # type: ignore[return-value]
        return super().envelope(payload, **values)


def failing() -> object:
    raise LookupError("lost my way")


OWNER = Owner("plugin 'pigeons': transport 'pigeon'")


async def use(transport: Transport) -> None:
    """What a channel does with a transport."""
    await transport.open()
    await transport.publish(transport.envelope(b"coo", timestamp_ns=1, ephemeral=False))
    await transport.by_hash([bytes(32)])
    assert not [page async for page in transport.by_time(5, 6)]
    await transport.receive()
    await transport.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "ill", ["open", "envelope", "publish", "receive", "by_hash", "by_time", "aclose"]
)
async def test_an_error_of_a_transport_keeps_its_type_and_names_the_plugin_once(ill: str) -> None:
    lost = LookupError("lost my way")  # the same error each time

    def lose() -> object:
        raise lost

    transport = PluginTransport(Sick(ill, lose), OWNER)
    for _ in range(2):
        with pytest.raises(LookupError) as raised:
            await use(transport)
        assert raised.value.__notes__ == [OWNER.note]
    await use(PluginTransport(Sick("", lose), OWNER))


class Working(MemoryTransport):
    """A transport with tasks of its own from `open` to `aclose`."""

    _tasks: AsyncExitStack

    async def open(self) -> None:
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            tasks.start_soon(anyio.sleep_forever)
            await super().open()
            self._tasks = stack.pop_all()

    async def aclose(self) -> None:
        await super().aclose()
        await self._tasks.aclose()


@pytest.mark.anyio
async def test_a_transport_may_have_a_task_group_from_open_to_aclose() -> None:
    network = MemoryNetwork()
    await use(PluginTransport(Working(network), OWNER))
    async with listening(channel("pigeon://x", plugins=[Pigeons(lambda url: Working(network))])):
        pass


@pytest.mark.anyio
async def test_a_transport_that_breaks_the_contract_ends_the_channel() -> None:
    transport = Sick("open", failing)
    with pytest.raises(BaseExceptionGroup) as raised:
        async with channel("pigeon://x", plugins=[Pigeons(lambda url: transport)]):
            pass
    assert raised.group_contains(LookupError, match="plugin 'Pigeons': transport 'pigeon'")


@pytest.mark.anyio
async def test_a_transport_that_fails_as_it_may_is_no_failing_plugin() -> None:
    def away() -> object:
        raise TransportError("the loft is empty")

    transport = Sick("publish", away)
    async with listening(channel("pigeon://x", plugins=[Pigeons(lambda url: transport)])) as told:
        with anyio.move_on_after(0.1):
            await anyio.sleep_forever()
        assert not told.of(ObserverSetAside)


@pytest.mark.anyio
async def test_observers_see_every_event_in_its_order() -> None:
    watcher = Watcher()
    alice = channel(plugins=[watcher])
    async with listening(alice) as told:
        for number in range(5):
            await alice.send(b"%d" % number)
        await told.until(lambda: len(told.events) >= 10)
        assert watcher.events[: len(told.events)] == told.events


@pytest.mark.anyio
async def test_a_failing_observer_is_named_and_set_aside() -> None:
    sick, sound = Watcher(failing), Watcher()
    sick.__name__ = "sick"  # type: ignore[attr-defined]
    alice = channel(plugins=[sick, sound], state=MemoryStateStore())
    async with listening(alice) as told:
        await alice.send(b"one")
        await alice.send(b"two")
        await told.first(ObserverSetAside)
        await told.until(lambda: len(told.events) >= 5)
        reason = "plugin 'sick': observe failed: LookupError('lost my way') at sending_message"
        assert told.of(ObserverSetAside) == [ObserverSetAside("sick", reason)]
        assert len(sick.events) == 1
        assert set(told.events) <= set(sound.events)


def test_an_observer_that_takes_long_is_named_once_and_goes_on() -> None:
    now_s = 0.0

    def dawdle() -> None:
        nonlocal now_s
        now_s += 1.5

    slow, sound = Watcher(dawdle), Watcher()
    slow.__name__ = "slow"  # type: ignore[attr-defined]
    registered = registry_with([sound, slow]).registered(Kind.OBSERVER)
    observers = Observers(
        [(one.plugin, one.call()) for one in registered],
        "general",
        "alice",
        lambda: ChannelHealth("general", "alice", True, True),
        now_s=lambda: now_s,
    )
    event = SyncSent("s")
    assert list(observers.emit(event, 0)) == [ObserverSlow("slow", 1_500)]
    assert list(observers.emit(event, 0)) == []
    assert slow.events == sound.events == [event, event]


def test_a_hook_that_takes_long_is_named_in_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    process_registry()
    ticks = count(0, 2.5)
    monkeypatch.setattr(plugin_code, "perf_counter", lambda: next(ticks))
    with pytest.warns(RuntimeWarning, match=r"'Pigeons': register_transports took 2\.5 s; it must"):
        registry_with([Pigeons()])


def test_the_trace_shows_a_call_before_it_returns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_TRACE_PLUGINS", "1")
    seen: list[str] = []

    def hang(url: str) -> object:
        seen.extend(capsys.readouterr().err.splitlines()[-1:])
        return MemoryNetwork().transport()

    channel("pigeon://x", plugins=[Pigeons(hang)])
    assert seen == ["plugin 'Pigeons': transport 'pigeon'(url='pigeon://x')"]


@pytest.mark.anyio
async def test_a_transport_that_hangs_is_given_up_and_the_message_goes_later() -> None:
    network, told_of = MemoryNetwork(), anyio.Event()

    class Hanging(MemoryTransport):
        async def publish(self, envelope: Envelope) -> None:
            if not told_of.is_set():
                await anyio.sleep_forever()
            await super().publish(envelope)

    pigeons = Pigeons(lambda url: Hanging(network))
    alice = channel("pigeon://x", plugins=[pigeons], now_ns=now_ns)
    async with listening(alice) as told:
        await alice.send(b"coo")
        health = await told.first(NodeHealthChanged, within_s=61)
        assert health.state == "failing"
        assert "plugin 'Pigeons': transport 'pigeon': publish did not return in 60 s" in (
            health.reason
        )
        told_of.set()
        await told.first(MessageSent, within_s=121)
        assert network.store


@pytest.mark.anyio
async def test_a_query_that_hangs_counts_as_failed() -> None:
    class Hanging(MemoryTransport):
        async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
            await anyio.sleep_forever()
            raise AssertionError("it slept for ever")

    transport = PluginTransport(Hanging(MemoryNetwork()), OWNER)
    with pytest.raises(StoreUnavailable, match="'pigeon': by_hash did not return in 60 s"):
        await transport.by_hash([bytes(32)])


@pytest.mark.anyio
async def test_what_was_accepted_before_a_plugin_failed_goes_out_later() -> None:
    network, state = MemoryNetwork(), MemoryStateStore()
    sick = Sick("publish", failing)
    with pytest.raises(BaseExceptionGroup) as raised:
        async with channel("pigeon://x", plugins=[Pigeons(lambda url: sick)], state=state) as alice:
            await alice.send(b"coo")
            await anyio.sleep_forever()
    assert raised.group_contains(LookupError, match="plugin 'Pigeons': transport 'pigeon'")
    sound = Pigeons(lambda url: network.transport(url))
    bob = ReliableChannel("pigeon://x", channel_id="general", sender_id="bob", plugins=[sound])
    async with listening(bob) as told, channel("pigeon://x", plugins=[sound], state=state):
        event = await told.first(MessageReceived)
        assert event.content == b"coo"


@pytest.mark.anyio
async def test_an_encryption_comes_by_its_url() -> None:
    async def reverse(content: bytes) -> bytes:
        return content[::-1]

    class Mirrors:
        @hookimpl
        def register_encryptions(self, register: Register) -> None:
            register("mirror", lambda: EncryptionPair(reverse, reverse))

    alice = channel(plugins=[Mirrors()], encryption="mirror:")
    async with listening(alice) as told:
        await alice.send(b"one")
        await told.until(lambda: told.events)
    with pytest.raises(ValueError, match=r"^`encryption` must be .* schemes mirror \(got 'glass:"):
        channel(plugins=[Mirrors()], encryption="glass:")


def test_a_state_store_comes_by_its_url() -> None:
    class Stones:
        @hookimpl
        def register_state_stores(self, register: Register) -> None:
            register("stone", self.carve)

        def carve(self, url: str, sender_id: str) -> object:
            assert url == f"stone:{sender_id}"
            return MemoryStateStore()

    channel(plugins=[Stones()], state="stone:alice")
    with pytest.raises(
        ValueError, match=r"`state` must be .* memory, sqlite, stone \(got 'sand:x'"
    ):
        channel(plugins=[Stones()], state="sand:x")


class Typo:
    @hookimpl
    def register_transport(self, register: Register) -> None: ...


class OtherArguments:
    @hookimpl
    def register_transports(self, address: str) -> None: ...


class Registers:
    """A plugin that registers one transport."""

    def __init__(self, name: Any, provided: object, times: int = 1) -> None:
        self.name, self.provided, self.times = name, provided, times

    @hookimpl
    def register_transports(self, register: Register) -> None:
        for _ in range(self.times):
            register(self.name, self.provided)


class Failing:
    @hookimpl
    def register_observers(self, register: Register) -> None:
        failing()


class WakuFraming:
    @hookimpl(wrapper=True)
    def register_observers(self, register: Register) -> Iterator[None]:
        yield


class Awaiting:
    @hookimpl
    async def register_observers(self, register: Register) -> None:
        pass


class AwaitedObserver:
    """A plugin with an observer that nobody awaits."""

    def __init__(self, form: int) -> None:
        self.form = form

    @hookimpl
    def register_observers(self, register: Register) -> None:
        register("one", [self.observe, partial(self.observe), self][self.form])

    async def observe(self, event: AnyEvent) -> None:
        pass

    __call__ = observe


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        (
            WakuFraming(),
            "^plugin 'WakuFraming': register_observers cannot run as a hook; leave out `wrapper=T",
        ),
        (Awaiting(), "^plugin 'Awaiting': register_observers cannot run as a hook; leave out"),
        *(
            (
                AwaitedObserver(n),
                "observer 'one' must be a function without `async`, because the channel does",
            )
            for n in range(3)
        ),
        (Typo(), "'Typo' does not fit its hooks: .*register_transport"),
        (OtherArguments(), "'OtherArguments' does not fit its hooks: .*address"),
        (Pigeons, "'Pigeons' is a class; register an instance"),
        ("pigeons", "'str' implements no hook: its functions need"),
        (ModuleType("empty"), "'empty' implements no hook: its functions need"),
        (Failing(), "^plugin 'Failing': register_observers failed: LookupError"),
        (Registers("Pigeon://", "a:b"), r"by a URL scheme in lower case, .* \(got 'Pigeon://'\)"),
        (Registers(5, "a:b"), r"by a URL scheme in lower case, .* \(got 5\)"),
        (Registers("x", "a:b", 2), "^transport 'x' is registered twice, by 'Registers' and by 'R"),
        (Registers("x", 5), r"transport 'x' must be a function \(got 5\)"),
        (
            Registers("x", lambda address: None),
            "transport 'x' takes the arguments address, which .*can take url, ch",
        ),
    ],
)
def test_what_is_no_plugin_is_refused(plugin: object, text: str) -> None:
    with pytest.raises(PluginError, match=text):
        channel(plugins=[plugin])


class Found(EntryPoint):
    """An entry point as a distribution would have it."""

    def load(self) -> object:
        value = _plugins[self.value]
        if isinstance(value, Exception):
            raise value
        return value


_plugins: dict[str, object] = {
    "pigeons": Pigeons(),
    "watcher": Watcher(),
    "broken": ImportError("no module named feathers"),
    "empty": ModuleType("empty"),
}


def install(monkeypatch: pytest.MonkeyPatch, *names: str, selection: str | None) -> None:
    found = [Found(name, name, PROJECT) for name in names]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found)
    if selection is None:
        monkeypatch.delenv("RELIABLE_CHANNEL_PLUGINS", raising=False)
    else:
        monkeypatch.setenv("RELIABLE_CHANNEL_PLUGINS", selection)


@pytest.mark.parametrize(
    ("selection", "loaded"),
    [
        (None, {"pigeons", "watcher"}),
        ("", set()),
        ("none", set()),
        ("pigeons", {"pigeons"}),
        (" watcher , pigeons,", {"pigeons", "watcher"}),
    ],
)
def test_the_environment_selects(
    fresh: None, monkeypatch: pytest.MonkeyPatch, selection: str | None, loaded: set[str]
) -> None:
    install(monkeypatch, "pigeons", "watcher", selection=selection)
    assert set(process_registry().plugins) == {BUILT_IN} | loaded


@pytest.mark.parametrize(
    ("names", "selection", "text"),
    [
        (["pigeons"], "doves", r"RELIABLE_CHANNEL_PLUGINS names doves; installed are pigeons"),
        (["broken"], None, r"'broken' of unknown .*ImportError.*RELIABLE_CHANNEL_PLUGINS=none"),
        (["empty"], None, r"'empty' implements no hook"),
        (["pigeons", "pigeons"], None, r"two plugins have the name 'pigeons'"),
    ],
)
def test_what_cannot_be_loaded_is_named(
    fresh: None,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    selection: str | None,
    text: str,
) -> None:
    install(monkeypatch, *names, selection=selection)
    with pytest.raises(PluginError, match=text):
        channel()


def test_a_broken_plugin_is_listed_as_broken_and_commands_work(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "broken", "pigeons", selection=None)
    listed = {plugin.name: plugin for plugin in installed()}
    assert listed["pigeons"].hooks == ("register_transports",)
    assert listed["pigeons"].registered == {"transports": ["pigeon"]}
    assert listed[BUILT_IN].registered["state_stores"] == ["memory", "sqlite"]
    assert "no module named feathers" in listed["broken"].problem
    ran = CliRunner().invoke(command_line(), ["plugins"])
    assert ran.exit_code == 0
    assert "feathers" in ran.output


class Commands:
    def __init__(self, add: Callable[[typer.Typer], object]) -> None:
        self.add = add

    @hookimpl
    def register_commands(self, app: typer.Typer) -> None:
        self.add(app)


def test_commands_are_added_and_a_failing_plugin_takes_none_with_it(
    fresh: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def coo(app: typer.Typer) -> None:
        @app.command()
        def coo_loudly() -> None:
            typer.echo("COO")

        @app.command()
        def chat() -> None: ...

        loft = typer.Typer()
        loft.command("open")(lambda: None)
        loft.command("clean")(lambda: typer.echo("CLEAN"))
        app.add_typer(loft, name="loft")

    def add(app: typer.Typer) -> None:
        loft = typer.Typer()
        loft.command("open")(lambda: None)
        loft.command("close")(lambda: typer.echo("CLOSED"))
        app.add_typer(loft, name="loft")

    def fail(app: typer.Typer) -> None:
        app.command()(lambda: None)
        raise LookupError("lost my way")

    _plugins["coo"], _plugins["more"], _plugins["sick"] = map(Commands, (coo, add, fail))
    install(monkeypatch, "coo", "more", "sick", selection=None)
    app = command_line()
    assert len(app.registered_commands) == len(COMMANDS) + 1
    assert [group.name for group in app.registered_groups] == ["state", "loft"]
    said = " ".join(capsys.readouterr().err.split())
    assert "the command 'chat' of plugin 'coo' is left out: the name is taken" in said
    assert "plugin 'sick': register_commands failed: LookupError('lost my way')" in said
    assert "the command 'open' of plugin 'more' is left out: the name is taken" in said
    assert "COO" in CliRunner().invoke(app, ["coo-loudly"]).output
    for word, told in (("clean", "CLEAN"), ("close", "CLOSED")):
        assert told in CliRunner().invoke(app, ["loft", word]).output


def test_a_command_of_a_missing_package_names_it(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RELIABLE_CHANNEL_PLUGINS", raising=False)
    process_registry.cache_clear()
    packages = {plugin.name: plugin.distribution for plugin in installed()}
    theirs = {
        words.partition(" ")[0]: packages[plugin]
        for plugin, commands in commands_of_plugins().items()
        for words in commands
        if packages[plugin] != "reliable-channel-moderation"  # which adds to `bot`
    }
    assert theirs == PACKAGES
    process_registry.cache_clear()
    install(monkeypatch, selection="none")
    told = CliRunner().invoke(command_line(), ["audit", "journals", "here"])
    assert told.exit_code == 2
    assert "pip install reliable-channel-audit" in told.output
    assert "pip install" not in CliRunner().invoke(command_line(), ["adit"]).output


def test_a_plugin_that_cannot_be_loaded_takes_no_commands_of_others_with_it(
    fresh: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def coo(app: typer.Typer) -> None:
        app.command("coo")(lambda: typer.echo("COO"))

    _plugins["coo"] = Commands(coo)
    install(monkeypatch, "broken", "coo", "empty", selection=None)
    assert "COO" in CliRunner().invoke(command_line(), ["coo"]).output
    said = " ".join(capsys.readouterr().err.split())
    assert "no module named feathers" in said
    assert "plugin 'empty' implements no hook" in said


def test_calls_are_traced_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    process_registry()
    monkeypatch.setenv("RELIABLE_CHANNEL_TRACE_PLUGINS", "1")
    channel("pigeon://x", plugins=[Pigeons()])
    hook, made = capsys.readouterr().err.splitlines()
    assert re.match(r"plugin 'Pigeons': register_transports\(.*\) -> None in \d+\.\d\d ms$", hook)
    assert made.startswith("plugin 'Pigeons': transport 'pigeon'(url='pigeon://x') -> <")


def test_every_hook_says_when_what_it_registers_runs() -> None:
    hooks = {name: hook for name, hook in vars(Hooks).items() if not name.startswith("_")}
    assert len(hooks) == len(Kind) + 1 <= 11
    page = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
    for name, hook in hooks.items():
        assert re.search(r"\b(hook|It) runs ", " ".join(hook.__doc__.split())), name
        arguments = [
            argument for argument in inspect.signature(hook).parameters if argument != "self"
        ]
        assert f"| `{name}({', '.join(arguments)})` |" in page, name


def test_what_the_sdk_does_by_itself_fills_the_same_hooks() -> None:
    filled = {hook for plugin in installed() if plugin.name == BUILT_IN for hook in plugin.hooks}
    # It encrypts nothing, observes nothing; its own checks and commands work without any plugin.
    others = {
        *("register_encryptions", "register_observers"),
        *("register_checks", "register_commands"),
    }
    assert filled | others == {name for name in vars(Hooks) if not name.startswith("_")}


def test_what_the_sdk_registers_by_its_place_can_be_imported() -> None:
    registered = [one for kind in Kind for one in process_registry().registered(kind)]
    built_in = [one for one in registered if one.built_in]
    assert len({one.name for one in built_in}) > 10
    for one in built_in:
        assert one.load() is not None
