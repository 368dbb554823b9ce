"""Journals of real channels, read whole and while they are written."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from pytest_reliable_channel.channels import Channels
from reliable_channel_audit.lines import Line
from reliable_channel_watch.model import View
from reliable_channel_watch.reading import Follower, note
from reliable_channel_watch.values import Lamp
from watch_tests.world import NAMES, talk, view_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time


async def test_journals_of_a_channel_show_every_message_with_all(
    channels: Channels, tmp_path: Path
) -> None:
    await talk(channels, tmp_path, loss=0.3)
    view = view_of(tmp_path)
    assert sorted(lane.name for lane in view.lanes) == sorted(NAMES)
    assert view.channel_ids == {"test"}
    assert {(each.count, each.failed_ms) for each in view.messages.values()} == {(2, None)}
    assert len(view.messages) == 15 and view.gaps
    assert all(gap.until_ms is not None for gap in view.gaps.values())
    assert all(each.parents for each in list(view.messages.values())[3:])
    assert all(each.hint and each.sent_ms for each in view.messages.values())
    _, total, useful = map(sum, zip(*view.seconds(), strict=True))
    assert 0 < useful < 0.1 * total  # short texts, long bloom filters


async def test_a_node_that_is_away_is_seen_in_the_lamps(channels: Channels, tmp_path: Path) -> None:
    (alice,) = await channels.open("alice", journal=tmp_path / "alice.jsonl")
    await alice.send("one")
    await channels.sleep(5)
    with channels.node_away():
        await alice.send("two")
        await channels.sleep(60)
    await channels.sleep(60)
    await alice.stop()
    view = view_of(tmp_path)
    send = view.lamps[0, ""][Lamp.SEND]
    assert [is_on for _, is_on, _ in send.changes] == [True, False, True]
    assert send.changes[1][2]
    message = list(view.messages.values())[1]
    assert message.sent_ms is not None and message.sent_ms - message.at_ms > 1_000


async def test_a_journal_is_followed_line_by_line_over_its_parts(
    channels: Channels, tmp_path: Path
) -> None:
    await talk(channels, tmp_path, loss=0.3)
    whole = view_of(tmp_path)
    source = (tmp_path / "bob.jsonl").read_bytes().splitlines(keepends=True)
    half = len(source) // 2
    follower, view, folder = Follower([tmp_path / "live"]), View(), tmp_path / "live"
    folder.mkdir()
    for name in ("alice", "carol"):
        (folder / f"{name}.jsonl").write_bytes((tmp_path / f"{name}.jsonl").read_bytes())
    live = folder / "bob.jsonl"

    def look() -> int:
        lines = list(follower.look())
        for participant, line in lines:
            note(view, participant, line)
        return len(lines)

    live.write_bytes(b"".join(source[:3]) + source[3][:20])
    assert look() > 3
    with live.open("ab") as file:
        file.write(source[3][20:] + b"".join(source[4:half]))
    # Renamed and packed, as a journal does with its parts, before the rest was read.
    live.rename(folder / "bob.0001.jsonl")
    (folder / "bob.0001.jsonl.gz").write_bytes(
        gzip.compress((folder / "bob.0001.jsonl").read_bytes())
    )
    (folder / "bob.0001.jsonl").unlink()
    live.write_bytes(source[0])  # a new part begins with whose it is
    assert look() == half - 3 + 1
    assert look() == 0
    follower.close()
    assert {each.message_id for each in view.messages.values()} == {
        each.message_id for each in whole.messages.values()
    }


async def test_a_directory_that_is_read_later_has_its_packed_parts(
    channels: Channels, tmp_path: Path
) -> None:
    await talk(channels, tmp_path)
    lines = (tmp_path / "bob.jsonl").read_bytes()
    (tmp_path / "bob.0001.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "bob.jsonl").write_bytes(lines.splitlines(keepends=True)[0])
    assert len(view_of(tmp_path).messages) == 15


async def test_what_cannot_be_read_is_counted_and_the_rest_is_shown(
    channels: Channels, tmp_path: Path
) -> None:
    await talk(channels, tmp_path)
    path = tmp_path / "bob.jsonl"
    path.write_bytes(b'{"event":"\xff"}\nnonsense\n' + path.read_bytes() + b'{"torn')
    (tmp_path / "broken.jsonl.gz").write_bytes(b"no gzip")
    view = View()
    with Follower([tmp_path]) as follower:
        for participant, line in follower.look():
            note(view, participant, line)
    assert follower.set_aside == 3 and len(view.messages) == 15
    with pytest.raises(FileNotFoundError):
        Follower([tmp_path / "nowhere"]).look()


def test_health_of_a_node_is_that_of_its_services() -> None:
    view = View()
    text = '{"address":"http://n","state":"%s","reason":"%s"}'
    for at_ms, (state, why) in enumerate([("unsubscribed", "gone"), ("healthy", "")]):
        line = Line("node_health_changed", at_ms, record=text % (state, why))
        note(view, "alice", line)
    services = view.lamps[0, "http://n"]
    assert services[Lamp.RECEIVE].at(0) == (False, "gone")
    assert services[Lamp.RECEIVE].at(1) == (True, "") == services[Lamp.SEND].at(1)
    assert services[Lamp.SEND].at(0) is None


def test_events_of_the_end_of_a_message_are_noted() -> None:
    view = View()
    view.opened("bob", 0)
    view.entered_log("alice", "m", "alice", 0)
    note(
        view,
        "alice",
        Line(
            "message_acknowledged",
            5,
            "m",
            record='{"message_id":"m","acknowledged_by":"bob","source":"bloom_filter"}',
        ),
    )
    note(view, "alice", Line("send_failed", 6, "m", record='{"message_id":"m","reason":"no"}'))
    message = view.message("m")
    assert message is not None and message.acknowledged_how == "by the bloom filter of bob"
    assert (message.failed_ms, message.failure, message.count) == (6, "no", 1)
