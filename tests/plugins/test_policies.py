"""Policies by name, of plugins, and of the application; and those that break their word."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel import MessageSent, ReliableChannel
from reliable_channel._contracts.repair_policies import RepairStep
from reliable_channel._plugins.hooks import Register, hookimpl
from reliable_channel._plugins.loading import process_registry
from reliable_channel._plugins.registry import Kind
from reliable_channel._plugins.resolve import make_function
from reliable_channel.errors import PluginError
from reliable_channel.sds.ids import js_waku_id
from reliable_channel.sds.outgoing import Unacknowledged, doubling, fixed
from reliable_channel.state import MemoryStateStore
from tests import inside
from tests.channel.world import QUICK, MemoryNetwork, listening, now_ns, spied

HOUR_MS = 3_600_000


class Named:
    """A plugin with a policy of each kind."""

    def __init__(self, policy: Callable[..., Any]) -> None:
        self.policy = policy

    @hookimpl
    def register_retry_policies(self, register: Register) -> None:
        register("mine", self.policy)

    @hookimpl
    def register_id_functions(self, register: Register) -> None:
        register("mine", self.policy)


def channel(network: MemoryNetwork | None = None, **arguments: Any) -> ReliableChannel:
    return ReliableChannel(
        transport=spied(network or MemoryNetwork()),
        channel_id="general",
        sender_id="alice",
        options=QUICK,
        now_ns=now_ns,
        **arguments,
    )


@given(st.integers(1, 1_000), st.booleans(), st.integers(1, 10**8))
def test_doubling_grows_and_stays_within_an_hour_or_the_interval(
    attempts: int, possibly: bool, interval_ms: int
) -> None:
    wait_ms = doubling(Unacknowledged(attempts, possibly, interval_ms))
    assert interval_ms <= wait_ms <= max(HOUR_MS, interval_ms)
    assert wait_ms <= doubling(Unacknowledged(attempts + 1, possibly, interval_ms))
    if attempts == 1:
        assert wait_ms == interval_ms


@pytest.mark.anyio
@pytest.mark.parametrize(("policy", "gaps_s"), [("fixed", [60] * 4), ("doubling", [60, 120, 240])])
async def test_messages_go_again_when_the_policy_says(
    virtual_time: None, policy: str, gaps_s: list[int]
) -> None:
    network, at_s = MemoryNetwork(), list[float]()
    alice = channel(
        network, retry_policy=policy, retry_interval_ms=60_000, sync_min_interval_ms=HOUR_MS
    )
    async with listening(alice):
        spy = inside.given_transport(alice)
        publish = spy.publish

        async def noted(envelope: Any) -> None:
            at_s.append(now_ns() / 1e9)
            await publish(envelope)

        spy.publish = noted
        await alice.send(b"hello")
        await anyio.sleep(sum(gaps_s) + 1)
    waits = [round(after - before) for before, after in pairwise(at_s)]
    assert waits == gaps_s


@pytest.mark.anyio
async def test_ids_are_made_as_asked_for() -> None:
    expected = {
        "js-waku": js_waku_id("alice", 0, b"hello"),
        "mine": "5 bytes of alice",
    }
    plugin = Named(lambda sender_id, at_ns, content: f"{len(content)} bytes of {sender_id}")
    for name, message_id in expected.items():
        async with channel(id_function=name, plugins=[plugin]) as alice:
            assert (await alice.send(b"hello")).message_id == message_id
    async with channel(id_function=lambda *_: "given") as alice:
        assert (await alice.send(b"hello")).message_id == "given"


def test_a_name_that_nobody_knows_is_refused() -> None:
    for argument, known in (("retry_policy", "doubling, fixed"), ("id_function", "lip-173")):
        asked: dict[str, Any]
        for asked in ({argument: "mine"}, {argument: 5}):
            with pytest.raises(ValueError, match=rf"^`{argument}` must be .* \(got ('mine'|5)\)"):
                channel(**asked)
        asked = {argument: "yours", "plugins": [Named(js_waku_id)]}
        with pytest.raises(ValueError, match=known):
            channel(**asked)


def test_a_name_that_two_know_names_both() -> None:
    class Doubling:
        @hookimpl
        def register_retry_policies(self, register: Register) -> None:
            register("doubling", fixed)

    with pytest.raises(PluginError, match=r"'doubling' .* twice, by 'built in' and by 'Doubling'"):
        channel(retry_policy="doubling", plugins=[Doubling()])


def fail(*_: object) -> int:
    raise LookupError("lost my way")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("policy", "whose"),
    [("mine", "plugin 'Named': retry policy 'mine'"), (fail, "the application: retry_policy")],
)
async def test_a_failing_retry_policy_ends_the_channel_with_its_name_and_loses_nothing(
    policy: Any, whose: str
) -> None:
    network, state = MemoryNetwork(), MemoryStateStore()
    for payload in (b"one", b"two"):
        await anyio.sleep(1)
        with pytest.raises(BaseExceptionGroup) as raised:
            alice = channel(network, retry_policy=policy, plugins=[Named(fail)], state=state)
            async with listening(alice) as told:
                await alice.send(payload)
                await told.first(MessageSent)
        assert raised.group_contains(LookupError, match=f"lost my way\n{whose}")
    async with channel(network, state=state) as alice:
        assert [entry.content for entry in alice.log()] == [b"one", b"two"]


@pytest.mark.anyio
@pytest.mark.parametrize("made", [0, -5, None, 1.5])
async def test_a_wait_that_is_none_ends_the_channel_with_the_name_of_its_policy(made: Any) -> None:
    with pytest.raises(BaseExceptionGroup) as raised:
        alice = channel(retry_policy="mine", plugins=[Named(lambda _: made)])
        async with listening(alice) as told:
            await alice.send(b"hello")
            await told.first(MessageSent)
    text = rf"`retry_policy` must return a whole number of milliseconds from 1 \(got {made}\)"
    assert raised.group_contains(ValueError, match=f"{text}\nplugin 'Named': retry policy 'mine'")


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (None, "`retrieval_strategy` must return a RepairStep (got None)"),
        (RepairStep(1.5), "`RepairStep.look_at_ms` must be None or a whole number of milliseconds"),  # type: ignore[arg-type]
        (RepairStep(ask_at_ms=True), "`RepairStep.ask_at_ms` must be None or a whole number of"),
        (RepairStep(look="x"), "`RepairStep.look` must be one of ('hint', 'time', "),  # type: ignore[arg-type]
        (RepairStep(look=[]), "`RepairStep.look` must be one of ('hint', 'time', "),  # type: ignore[arg-type]
        (RepairStep(1, "time", -1), ""),
        (RepairStep(), ""),
    ],
)
def test_a_step_is_checked_in_each_field(step: Any, text: str) -> None:
    decide = make_function(process_registry(), Kind.REPAIR_POLICY, lambda missing: step)
    if text:
        with pytest.raises(ValueError, match=re.escape(text)) as raised:
            decide(None)
        assert raised.value.__notes__ == ["the application: retrieval_strategy"]
    else:
        assert decide(None) is step


@pytest.mark.anyio
async def test_an_id_of_the_greatest_length_is_sent() -> None:
    async with channel(id_function=lambda *_: "x" * 1_024) as alice:
        assert (await alice.send(b"x")).message_id == "x" * 1_024


@pytest.mark.anyio
@pytest.mark.parametrize("made", ["", None, b"x", "x" * 1_025])
async def test_an_id_that_is_none_is_refused_before_anything_is_sent(made: Any) -> None:
    async with channel(id_function=lambda *_: made) as alice:
        with pytest.raises(ValueError, match="return a text of 1 to 1,024 characters") as raised:
            await alice.send(b"x")
        assert len(str(raised.value)) < 120
        assert alice.log() == []


@pytest.mark.anyio
async def test_an_error_of_an_id_function_is_raised_to_the_sender() -> None:
    async with channel(id_function="mine", plugins=[Named(fail)]) as alice:
        with pytest.raises(LookupError, match="lost my way\nplugin 'Named': id function 'mine'"):
            await alice.send(b"hello")
        assert alice.log() == []
