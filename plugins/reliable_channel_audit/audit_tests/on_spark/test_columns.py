"""Journals read by columns say what they say row by row, or are left to the rows."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reliable_channel.runtime.journal import JOURNAL_FORMAT
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel_audit.journals import group_of, journal_files
from tests.journal_lines import journal_text, json_lines

from .. import simulated
from ..generated import SMALL_BLOOM, write_group
from ..mutations import mutate
from ..planted import FAULTS, plant
from .columns_fuzzed import CODEC, by_columns, by_rows, compared, fuzzed, spoilt

SEEDS = range(2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("bloom", [None, SMALL_BLOOM], ids=["without filters", "with filters"])
def test_clean_journals_are_read_by_columns(tmp_path: Path, seed: int, bloom: Any) -> None:
    write_group(tmp_path, seed=seed, loss=0.3, bloom=bloom)
    assert compared(tmp_path) == [True] * 4


@pytest.mark.parametrize("prefix", ["é\n", '"', "\\"])
def test_names_that_json_escapes(tmp_path: Path, prefix: str) -> None:
    write_group(tmp_path, participants=2, prefix=prefix)
    assert compared(tmp_path) == [True] * 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen_or_left_to_the_rows(tmp_path: Path, fault: str, seed: int) -> None:
    paths = write_group(tmp_path, seed=seed)
    plant(fault, paths[seed % len(paths)], seed)
    compared(tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_changed_journals_are_seen_or_left_to_the_rows(tmp_path: Path, seed: int) -> None:
    (path, *_) = write_group(tmp_path, participants=3, messages=40, seed=seed)
    whole, random, seen = json_lines(path), Random(seed), list[bool]()
    for _ in range(30):
        lines = [dict(line) for line in whole]
        mutate(lines, random)
        path.write_bytes(journal_text(lines))
        seen += compared(path)
    assert {True, False} == set(seen)


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_are_seen_or_left_to_the_rows(tmp_path: Path, seed: int) -> None:
    """Packed lines: bytes are changed, left out and doubled, and lines cut, doubled and moved."""
    (path, *_) = write_group(tmp_path, participants=2, messages=20, seed=seed)
    whole, random, seen = path.read_bytes(), Random(seed), list[bool]()
    for _ in range(40):
        path.write_bytes(spoilt(whole, random))
        seen += compared(path)
    assert {True, False} == set(seen)


@pytest.mark.parametrize("seed", [10, 15])
def test_fuzzed_journals_are_seen_or_left_to_the_rows(tmp_path: Path, seed: int) -> None:
    """Many seeds: `python -m audit_tests.on_spark.columns_fuzzed`."""
    assert {True, False} == set(fuzzed(seed, tmp_path))


class _Lines(list[dict[str, Any]]):
    """The lines of alice's journal, some of which other tests' journals never have."""

    def __init__(self, **options: int) -> None:
        opened: dict[str, Any] = {
            "format": JOURNAL_FORMAT,
            "channel_id": "c",
            "sender_id": "alice",
            "log_length": 0,
        }
        opened |= {"wanted_from_ms": 0, "options": options}
        super().__init__([{"event": "journal_opened", "at_ms": 0, **opened}])

    def own(self, message_id: str, at_ms: int, *, first: str) -> None:
        """An own message enters the log."""
        entry: dict[str, Any] = {"message_id": message_id, "sender_id": "alice"}
        entry |= {"lamport_timestamp": len(self), "position": int(message_id != first)}
        entry |= {"evicted": 0, "content_sha256": sha256(b"text").hexdigest()}
        entry |= {"first_segment_id": first, "message_hash": None, "missing": []}
        self.append({"event": "message_logged", "at_ms": at_ms, **entry})

    def came(self, message_id: str, reference: str, outcome: str, at_ms: int) -> None:
        """A message of bob's that refers to another one."""
        history = (HistoryEntry(reference),)
        payload = CODEC.encode(Message("bob", message_id, "c", 9, history, None, (), b"text"))
        line: dict[str, Any] = {"event": "wire_in", "at_ms": at_ms, "source": "live"}
        line |= {"message_hash": sha256(payload).hexdigest(), "timestamp_ns": 0}
        self.append(line | {"outcome": outcome, "payload": b64encode(payload).decode()})

    def about(self, event: str, at_ms: int, **values: Any) -> None:
        self.append({"event": event, "at_ms": at_ms, **values})

    def slide(self, from_ms: int, to_ms: int) -> None:
        """The clock goes back, by less than a second from line to line."""
        for at_ms in range(from_ms, to_ms, -900):
            self.about("sync_sent", at_ms)

    def has(self, directory: Path, detail: str) -> None:
        """The rows have one finding, and columns leave it to them."""
        (directory / "alice.jsonl").write_bytes(journal_text(self))
        (participant,) = group_of(journal_files([directory])).participants
        (found,) = by_rows(participant)["Finding"]
        assert found["detail"] == detail
        assert by_columns(participant) is None


UNTOLD = "other participants have it, but no acknowledgement was emitted"


def test_a_clock_that_slides_back_hides_no_missing_acknowledgement(tmp_path: Path) -> None:
    """Rows take the time of the first reference that they count as heard."""
    lines = _Lines()
    lines.about("sending_message", 10_000, message_id="m1")
    lines.own("m1", 10_000, first="m1")
    lines.came("again", "m1", "duplicate", 5_000_000)
    lines.slide(5_000_000, 11_000)
    lines.came("later", "m1", "sync", 11_000)
    lines.has(tmp_path, UNTOLD)


def test_an_acknowledged_segment_hides_no_other_one(tmp_path: Path) -> None:
    lines = _Lines()
    lines.own("m1", 10_000, first="m1")
    lines.about("message_acknowledged", 10_000, message_id="m1", source="bloom_filter")
    lines.about("sending_message", 10_000, message_id="m1")
    lines.own("m2", 10_000, first="m1")
    lines.came("one", "m1", "sync", 11_000)
    lines.came("other", "m2", "sync", 11_000)
    lines.about("journal_closed", 60_000)
    lines.has(tmp_path, UNTOLD)


def test_a_clock_that_slides_back_hides_no_request_too_many(tmp_path: Path) -> None:
    lines = _Lines(repair_t_max_ms=100_000)
    for _ in range(20):
        lines.about("repair_requested", 500_000, message_ids=["m1"])
    lines.slide(500_000, 300_000)
    for _ in range(20):
        lines.about("repair_requested", 300_000, message_ids=["m1"])
    lines.has(tmp_path, "asked for 40 times, while this participant's clock went back by 200000 ms")


def test_a_clock_beyond_all_times_is_seen_to_go_back(tmp_path: Path) -> None:
    lines = _Lines()
    lines.about("sync_sent", 2**63 - 1)
    lines.about("sync_sent", 2 - 2**63)
    lines.has(tmp_path, f"the clock went back by {2**64 - 3} ms")


def test_options_of_another_type_are_taken_for_the_defaults(tmp_path: Path) -> None:
    """They ended the judgement in a TypeError or a division by zero."""
    lines = _Lines()
    options = {"repair_max_request_attempts": "5", "repair_t_max_ms": 0, "wire_profile": []}
    lines[0]["options"] = options
    for _ in range(11):
        lines.about("repair_requested", 7, message_ids=["m1"])
    lines.has(tmp_path, "asked for 11 times within 0 ms")


@pytest.mark.parametrize("wanted_ms", [2**63, -(2**63) - 1, "0"])
def test_a_session_with_a_wanted_time_that_is_none_is_set_aside(
    tmp_path: Path, wanted_ms: object
) -> None:
    lines = _Lines()
    lines[0]["wanted_from_ms"] = wanted_ms
    path = tmp_path / "alice.jsonl"
    path.write_text(json.dumps(lines[0]) + "\n" + json.dumps(_Lines()[0]) + "\n")
    (participant,) = group_of(journal_files([path])).participants
    (aside,) = by_rows(participant)["SetAside"]
    assert aside["reason"].startswith("bad value in journal_opened")


@pytest.mark.parametrize("seed", [7, 11, 158, 303])
def test_journals_of_simulated_channels(tmp_path: Path, seed: int) -> None:
    """With kills, a partition and a Store that is away."""
    simulated.run(seed, tmp_path)
    compared(tmp_path)


@pytest.mark.parametrize("between", [b" ", b"\r", b"\n\n", b"\r\n"])
def test_each_line_is_one_event(tmp_path: Path, between: bytes) -> None:
    """Two on a line, beside an empty line, are as many as lines; by rows neither is read."""
    (path, *_) = write_group(tmp_path, participants=1, bloom=None)
    first, *others = path.read_bytes().splitlines()
    one, two, *rest = others
    path.write_bytes(b"\n".join([first, one + between + two, b"", *rest, b""]))
    assert compared(path) == [False]


@pytest.mark.parametrize("packed", ["=", "1=CgE=", "=CgFh 01", "=CgFh 9", "=CgFh ", "~1", "1-0"])
def test_packed_bytes_that_no_packer_writes(tmp_path: Path, packed: str) -> None:
    (path, *_) = write_group(tmp_path, participants=1, bloom=None)
    lines = list(map(json.loads, path.read_bytes().splitlines()))
    next(line for line in lines if line["event"] == "wire_out")["packed"] = packed
    path.write_bytes(journal_text(lines))
    assert compared(path) == [False]


def test_packed_parts_are_read_on(tmp_path: Path) -> None:
    (path, *_) = write_group(tmp_path, messages=60, part_bytes=8_000)
    assert len(journal_files([path])) > 3
    assert compared(tmp_path) == [True] * 4
    part = next(each for each in journal_files([tmp_path]) if each.suffix == ".gz")
    part.write_bytes(part.read_bytes()[:-20])
    assert False in compared(tmp_path)
    part.write_bytes(gzip.compress(b"\n"))
    compared(tmp_path)
