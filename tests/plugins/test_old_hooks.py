"""Plugins written for the hooks that asked: they work, and a warning names the new hook."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reliable_channel import Event, MessageReceived, ReliableChannel
from reliable_channel.encryption import EncryptionPair
from reliable_channel.errors import PluginError
from reliable_channel.hooks import Hooks, hookimpl
from reliable_channel.old_hooks import OldHooks
from reliable_channel.plugins import registry_with
from reliable_channel.policies import RETRY_POLICIES
from reliable_channel.registry import KINDS
from reliable_channel.repair_policies import both
from reliable_channel.sds.ids import js_waku_id
from reliable_channel.sds.profile import SPEC
from reliable_channel.state import MemoryStateStore
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import listening

REPLACED = [kind for kind in KINDS if kind.old_hook]
"""Kinds of the first release; later ones were never asked for by an old hook."""
OLD = [name for name in vars(OldHooks) if not name.startswith("_")]


async def reverse(content: bytes) -> bytes:
    return content[::-1]


class Old:
    """A plugin of the first release, with every hook it had."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.events: list[Event] = []
        self.profile = replace(SPEC, name="mine")

    @hookimpl
    def make_transport(self, url: str) -> object:
        return self.network.transport(url) if url.startswith("pigeon://") else None

    @hookimpl
    def make_state_store(self, url: str, channel_id: str) -> object:
        return MemoryStateStore() if url == f"stone:{channel_id}" else None

    @hookimpl
    def make_encryption(self, url: str) -> object:
        return EncryptionPair(reverse, reverse) if url == "mirror:" else None

    @hookimpl
    def make_sync_core(self, protocol: str, setting: object) -> object:
        return None

    @hookimpl
    def make_repair_policy(self, name: str) -> object:
        return both if name == "mine" else None

    @hookimpl
    def make_retry_policy(self, name: str) -> object:
        return RETRY_POLICIES["fixed"] if name == "mine" else None

    @hookimpl
    def make_id_function(self, name: str) -> object:
        return js_waku_id if name == "mine" else None

    @hookimpl
    def make_wire_profile(self, name: str) -> object:
        return self.profile if name == "mine" else None

    @hookimpl
    def observe(self, event: Event) -> None:
        self.events.append(event)


@pytest.fixture
def plugin(recwarn: pytest.WarningsRecorder) -> Iterator[Old]:
    yield Old()
    warned = {str(warning.message) for warning in recwarn}
    for kind in REPLACED:
        said = (f"the hook {kind.old_hook} will be removed", f"{kind.hook}(register)")
        assert any(all(part in text for part in said) for text in warned), kind.old_hook


def channel(plugin: object, node: str = "pigeon://loft", **arguments: Any) -> ReliableChannel:
    return ReliableChannel(
        node, channel_id="general", sender_id="alice", plugins=[plugin], **arguments
    )


@pytest.mark.anyio
async def test_a_plugin_of_the_old_hooks_works_and_a_warning_names_the_new_ones(
    plugin: Old,
) -> None:
    alice = channel(
        plugin,
        state="stone:general",
        encryption="mirror:",
        retry_policy="mine",
        id_function="mine",
        retrieval_strategy="mine",
        wire_profile="mine",
    )
    bob = ReliableChannel(
        "pigeon://loft",
        channel_id="general",
        sender_id="bob",
        plugins=[plugin],
        encryption="mirror:",
        wire_profile="mine",
    )
    async with listening(bob) as told, alice:
        request = await alice.send(b"coo")
        received = await told.first(MessageReceived)
    assert received.content == b"coo"
    assert request.message_id == received.message_id
    assert alice.options.profile.name == "mine"
    assert MessageReceived in map(type, plugin.events)


def test_every_old_hook_has_a_successor() -> None:
    assert sorted(OLD) == sorted(kind.old_hook for kind in REPLACED)
    assert {kind.hook for kind in KINDS} < set(vars(Hooks))


def test_a_name_that_an_old_plugin_claims_as_well_names_both(plugin: Old) -> None:
    class Greedy:
        @hookimpl
        def make_transport(self, url: str) -> object:
            return MemoryNetwork().transport()

    with pytest.raises(PluginError, match=r"'memory://x' .* two plugins, 'built in' and 'Greedy'"):
        channel(Greedy(), "memory://x")
    registry_with([plugin])


def test_an_old_plugin_that_answers_nonsense_is_named_like_any_other(plugin: Old) -> None:
    class Nonsense:
        @hookimpl
        def make_transport(self, url: str) -> object:
            return url

    with pytest.raises(PluginError, match=r"^plugin 'Nonsense': make_transport must return a Tr"):
        channel(Nonsense())
    registry_with([plugin])
