"""What is counted, and that it stays bounded."""

import gc
import weakref
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from metrics_tests.world import ACKNOWLEDGED, Channel, observed
from reliable_channel import ReliableChannel
from reliable_channel.diagnostics import NodeHealth, SyncSent
from reliable_channel.events import (
    AnyEvent,
    DeliveryFailed,
    MessageReceived,
    MessageSent,
    ParticipantSeen,
    ParticipantSilent,
    SendFailed,
    SendingMessage,
)
from reliable_channel.health import ChannelHealth
from reliable_channel_metrics import METERS, Meters, prometheus_text
from reliable_channel_metrics import meters as module
from reliable_channel_metrics.meters import LIVE, NODE_UP, READY, Metric
from tests import inside


def test_the_life_of_a_message_is_counted_and_timed() -> None:
    meters = observed(
        (SendingMessage("m", "r"), 1_000),
        (MessageSent("m", "r", b""), 1_100),
        (ACKNOWLEDGED, 3_000),
        (MessageReceived("n", "bob", b"x", 1, 0), 3_000),
        (SendFailed("o", "q", "refused"), 3_000),
        (DeliveryFailed("p", 3, "nobody"), 3_000),
    )
    text = prometheus_text(meters)
    labels = 'messaging_destination_name="general",messaging_client_id="alice"'
    for line in (
        f"messaging_client_sent_messages_total{{{labels}}} 1",
        f"messaging_client_consumed_messages_total{{{labels}}} 1",
        f'reliable_channel_failed_messages_total{{{labels},error_type="send_failed"}} 1',
        f'reliable_channel_failed_messages_total{{{labels},error_type="delivery_failed"}} 1',
        f'messaging_client_operation_duration_seconds_bucket{{{labels},le="0.1"}} 1',
        f"messaging_client_operation_duration_seconds_sum{{{labels}}} 0.1",
        f"reliable_channel_acknowledgement_duration_seconds_sum{{{labels}}} 2.0",
        f"reliable_channel_acknowledgement_duration_seconds_count{{{labels}}} 1",
        f"reliable_channel_ready{{{labels}}} 1",
    ):
        assert line in text.splitlines()


def test_participants_that_are_heard_are_counted_until_they_are_silent() -> None:
    seen, silent = ParticipantSeen("bob", "sync"), ParticipantSilent("bob", 420_000)
    for events, count in (((seen, seen), 1), ((seen, silent), 0)):
        text = prometheus_text(observed(*((event, 1_000) for event in events)))
        labels = 'messaging_destination_name="general",messaging_client_id="alice"'
        assert f"reliable_channel_participants{{{labels}}} {count}" in text.splitlines()


def test_a_message_of_an_earlier_process_is_counted_without_a_time() -> None:
    meters = observed((MessageSent("m", "r", b""), 5), (ACKNOWLEDGED, 9))
    assert meters.histograms == {}


def test_a_clock_that_steps_back_gives_no_negative_time() -> None:
    meters = observed((SendingMessage("m", "r"), 1_000), (MessageSent("m", "r", b""), 5))
    (histogram,) = meters.histograms.values()
    assert histogram.sum_s == 0


def test_series_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHANNELS", 2)
    monkeypatch.setattr(module, "PENDING", 2)
    monkeypatch.setattr(module, "NODES", 1)
    meters = Meters()
    nodes = tuple(NodeHealth(f"http://{n}:1", "healthy", "", 0) for n in "abc")
    busy = Channel(nodes=nodes)
    for number in range(5):
        name = f"channel {number}"
        meters.observe(name, "alice", SyncSent("s"), 0, busy.health)
        meters.observe(name, "alice", SendingMessage(str(number), "r"), 0, busy.health)
    assert len({attributes[0] for _, attributes in meters.counters}) == 3
    sizes = inside.sizes(meters)
    assert sizes["_began_ms"] == 2 and sizes["_channels"] <= 5
    assert len([one for one in meters.gauges() if one[0] is NODE_UP]) == 2


def test_labels_cannot_be_broken_and_tokens_do_not_leave() -> None:
    meters = Meters()
    node = NodeHealth("http://:hunter2@node:8645", "failing", "", 0)
    channel = Channel(nodes=(node,))
    meters.observe('a"} 1\nforged 1', "al\\ice", SyncSent("s"), 0, channel.health)
    text = prometheus_text(meters)
    assert "\nforged" not in text and "hunter2" not in text
    assert 'reliable_channel_node_up{server_address="http://node:8645"} 0' in text


def test_a_closed_channel_and_one_that_is_gone_have_no_gauges() -> None:
    channel = Channel()
    meters = observed((SyncSent("s"), 0), channel=channel)
    assert dict(gauges(meters))[READY] == 1
    channel.values["live"] = False
    assert gauges(meters) == []
    channel.values["live"] = True
    meters.observe("general", "alice", SyncSent("s"), 5_000, channel.health)
    assert dict(gauges(meters))[LIVE] == 1
    reference = weakref.ref(channel)
    del channel
    gc.collect()
    assert reference() is None and gauges(meters) == []


def test_syncs_of_a_quiet_channel_cost_one_look_at_its_health() -> None:
    channel, looks = Channel(), 0

    def health() -> ChannelHealth:
        nonlocal looks
        looks += 1
        return channel.health()

    meters = Meters()
    events: list[AnyEvent] = [ACKNOWLEDGED, *[SyncSent("s")] * 5, ACKNOWLEDGED]
    for number, event in enumerate(events, start=1):
        meters.observe("general", "alice", event, 60_000 * number, health)
    assert looks == 4  # the first one, two at acknowledgements, and one between them


def gauges(meters: Meters) -> list[tuple[Metric, int]]:
    return [(metric, value) for metric, _, value in meters.gauges()]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_an_installed_plugin_counts_every_channel_and_a_thread_can_read(
    tmp_path: Path,
) -> None:
    name = f"metrics {tmp_path.name}"
    plugins = [__import__("reliable_channel_metrics.plugin", fromlist=["x"])]
    async with ReliableChannel(
        f"memory://{tmp_path.name}", channel_id=name, sender_id="alice", plugins=plugins
    ) as channel:
        await channel.send(b"hello")
        async for event in channel.events():
            if isinstance(event, MessageSent):
                break
        text = prometheus_text(METERS)
        assert f'messaging_client_sent_messages_total{{messaging_destination_name="{name}"' in text
        found: list[Any] = []
        thread = Thread(target=lambda: found.extend(METERS.gauges()))
        thread.start()
        thread.join()
        assert any(
            dict(attributes).get("messaging.destination.name") == name for _, attributes, _ in found
        )
    assert f'reliable_channel_live{{messaging_destination_name="{name}"' not in prometheus_text()
