"""Closed journals become tables once, and a verdict on the tables is the one on the journals."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from reliable_channel_audit.check import check
from reliable_channel_audit.columns import reading
from reliable_channel_audit.columns.gathered import TABLES
from reliable_channel_audit.columns.messages import Decoded, Ids, decoded
from reliable_channel_audit.columns.reading import gathered_part
from reliable_channel_audit.facts import Delivery
from reliable_channel_audit.journals import Participant, journal_files
from reliable_channel_audit.plugin import register_commands
from reliable_channel_audit.promises import Context, compare_messages
from reliable_channel_audit.tables import comparing, judging, layout, participants
from reliable_channel_audit.tables import ingest as ingesting
from reliable_channel_audit.tables.ingest import (
    Ingested,
    ingest,
    parts,
    remove,
    shares_of,
    tables_in,
)
from reliable_channel_audit.tables.judging import Judged, judge
from reliable_channel_audit.tables.participants import known_of
from reliable_channel_audit.tables.stored_part import part_from
from reliable_channel_audit.verdict import Value
from tests.journal_lines import journal_text, json_lines

from .. import simulated
from ..generated import write_group
from ..planted import FAULTS, plant
from ..plants import read, write_parts

DAY_MS = 86_400_000


def run(journals: Path, facts: Path) -> tuple[Ingested, Judged]:
    done = ingest([journals], facts)
    return done, judge(facts, done.group)


def same(journals: Path, facts: Path) -> Judged:
    """The verdict, which is that of `check`."""
    _, judged = run(journals, facts)
    found, expected = judged.verdict.to_json(), check([journals]).to_json()
    assert json.loads(found) == json.loads(expected)
    return judged


def row_of(participant_id: str, facts: Path) -> dict[str, Any]:
    """The row of a participant's only part."""
    (row,) = [row for row in parts(facts) if row["participant_id"] == participant_id]
    return row


def cut(journals: Path, after_ms: int) -> None:
    """Leave of journals what was there at a time."""
    for path in journal_files([journals]):
        lines = json_lines(path)
        until_ms = lines[0]["at_ms"] + after_ms
        kept = [line for line in lines if line["at_ms"] <= until_ms]
        path.write_bytes(journal_text(kept))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_verdict_on_tables_is_that_on_journals(tmp_path: Path, fault: str) -> None:
    paths = write_group(tmp_path / "journals", seed=1, loss=0.3)
    plant(fault, paths[1], 1)
    same(tmp_path / "journals", tmp_path / "facts")
    for other in (paths[0], *paths[2:]):
        other.unlink()
    same(tmp_path / "journals", tmp_path / "alone")


@pytest.mark.parametrize("seconds", [5, 13, 20])
def test_the_verdict_on_a_running_group_is_that_on_its_journals(
    tmp_path: Path, seconds: int
) -> None:
    write_group(tmp_path / "journals", messages=200, seed=2)
    cut(tmp_path / "journals", seconds * 1000)
    done, judged = run(tmp_path / "journals", tmp_path / "facts")
    assert (done.added, judged.verdict.value) == (0, Value.KEPT)
    same(tmp_path / "journals", tmp_path / "facts")


@pytest.mark.parametrize("group", ["ended", "running", "one journal"])
def test_only_messages_that_differ_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    """Those of the last seconds, if the group was running."""
    compared = list[str]()

    def counting(context: Context, held: list[Delivery], *others: Any) -> Any:
        compared.extend({each.message_id for each in held})
        return compare_messages(context, held, *others)

    _, *others = write_group(tmp_path / "journals", messages=500, seed=2)
    if group == "running":
        cut(tmp_path / "journals", 20_000)
    for path in others if group == "one journal" else ():
        path.unlink()
    monkeypatch.setattr(comparing, "compare_messages", counting)
    _, judged = run(tmp_path / "journals", tmp_path / "facts")
    assert not judged.verdict.broken
    assert (0 < len(compared) < judged.verdict.messages / 3) == (group == "running")
    assert group == "running" or not compared


@pytest.mark.parametrize("seed", range(2))
def test_the_verdict_on_simulated_groups_is_that_on_their_journals(
    tmp_path: Path, seed: int
) -> None:
    """With restarts, which are judged row by row, beside participants that columns understand."""
    simulated.run(seed, tmp_path / "journals")
    same(tmp_path / "journals", tmp_path / "facts")


def test_parts_are_read_once_and_the_open_file_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals, facts = tmp_path / "journals", tmp_path / "facts"
    write_group(tmp_path / "whole", seed=3)
    write_parts(journals, read(tmp_path / "whole"))
    opened = Counter[str]()

    def counting(path: Path, *numbers: Any) -> Any:
        opened[path.name] += 1
        return gathered_part(path, *numbers)

    monkeypatch.setattr(ingesting, "gathered_part", counting)
    monkeypatch.setattr(participants, "gathered_part", counting)
    (live,) = journals.glob("p000.jsonl")
    live.write_bytes(live.read_bytes().rpartition(b"\n{")[0] + b"\n")  # without journal_closed
    done, _ = run(journals, facts)
    assert (done.added, done.known) == (15, 0)
    assert set(opened.values()) == {1}
    done, judged = run(journals, facts)
    assert (done.added, done.known) == (0, 15)
    assert {name for name, times in opened.items() if times > 1} == {"p000.jsonl"}
    assert judged.verdict.holds


def test_only_participants_with_a_new_part_are_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if they are judged row by row, as p001 is."""
    journals, facts, judged = tmp_path / "journals", tmp_path / "facts", list[str]()
    write_group(tmp_path / "whole", seed=4)
    plant("duplicate", tmp_path / "whole" / "p001.jsonl", 1)
    write_parts(journals, read(tmp_path / "whole"))
    newest = journals / "p002.jsonl"
    newest.rename(tmp_path / "newest")
    run(journals, facts)

    def counting(participant: Participant, *others: Any) -> Any:
        judged.append(participant.participant_id)
        return known_of(participant, *others)

    monkeypatch.setattr(judging, "known_of", counting)
    first = same(journals, facts)
    assert judged == []
    (tmp_path / "newest").rename(newest)
    second = same(journals, facts)
    assert judged == ["p002"]
    assert second.verdict.deliveries > first.verdict.deliveries


def test_a_closed_journal_that_is_written_on_is_open_again(tmp_path: Path) -> None:
    journals, facts = tmp_path / "journals", tmp_path / "facts"
    (path, *_) = write_group(journals, seed=6)
    *lines, closed = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[: len(lines) // 2], closed]))
    before, _ = run(journals, facts)
    path.write_bytes(b"".join(lines))
    after, _ = run(journals, facts)
    assert (before.added, after.added) == (4, 0)
    assert same(journals, facts).verdict.deliveries == 480


def test_a_message_is_decoded_once_however_many_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each copy has a hash; those of one hash are one message on the wire."""
    journals, payloads = tmp_path / "journals", list[bytes]()
    write_group(journals, participants=6, messages=200)

    def counting(payload: bytes, ids: Ids) -> Decoded:
        payloads.append(payload)
        return decoded(payload, ids)

    monkeypatch.setattr(reading, "decoded", counting)
    _, judged = run(journals, tmp_path / "facts")
    copies = [
        line["message_hash"]
        for path in journal_files([journals])
        for line in json_lines(path)
        if line["event"] in ("wire_in", "wire_out")
    ]
    assert len(payloads) == len(set(copies)) < len(copies) / 5
    assert judged.verdict.holds


def test_a_message_in_the_tables_of_others_is_not_decoded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals, facts, payloads = tmp_path / "journals", tmp_path / "facts", list[bytes]()
    (late, *_) = write_group(journals, loss=0.3)
    late.rename(tmp_path / late.name)
    run(journals, facts)
    (tmp_path / late.name).rename(late)
    ingest([late], tmp_path / "alone")

    def counting(payload: bytes, ids: Ids) -> Decoded:
        payloads.append(payload)
        return decoded(payload, ids)

    monkeypatch.setattr(ingesting, "LARGE_BYTES", 0)
    monkeypatch.setattr(reading, "decoded", counting)
    same(journals, facts)
    wire = [line for line in json_lines(late) if line["event"] in ("wire_in", "wire_out")]
    assert len(payloads) < len(wire) / 5
    ids, words = Ids(), Ids()
    found, expected = (
        part_from(row, tables_in(row, directory), ids, words)
        for directory in (facts, tmp_path / "alone")
        for row in [row_of("p000", directory)]
    )
    for name in TABLES:
        columns = zip(getattr(found, name), getattr(expected, name), strict=True)
        assert all(np.array_equal(*each) for each in columns), name
    remove(row_of("p000", facts), facts)
    for path in facts.glob("kind=wire/*/*/*.parquet"):
        path.write_bytes(path.read_bytes()[:-20])
    assert ingest([journals], facts).added == 1


def test_a_part_that_is_packed_takes_the_place_of_what_it_was(tmp_path: Path) -> None:
    journals, facts = tmp_path / "journals", tmp_path / "facts"
    write_group(tmp_path / "whole")
    write_parts(journals, read(tmp_path / "whole"))
    packed = journals / "p000.0001.jsonl.gz"
    packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.rename(tmp_path / packed.name)
    first, _ = run(journals, facts)
    packed.with_suffix("").unlink()
    (tmp_path / packed.name).rename(packed)
    second, judged = run(journals, facts)
    assert (first.added, second.added, second.known) == (16, 1, 15)
    assert len(parts(facts)) == 16
    assert (judged.verdict.holds, judged.verdict.deliveries) == (True, 480)


def test_a_copy_packed_by_hand_counts_once_while_its_journal_grows(tmp_path: Path) -> None:
    journals, facts = tmp_path / "journals", tmp_path / "facts"
    path, *_ = write_group(journals)
    lines = json_lines(path)
    path.write_bytes(journal_text(lines[: len(lines) // 2]))
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    same(journals, facts)
    path.write_bytes(journal_text(lines))
    same(journals, facts)


def test_a_message_that_only_a_restart_tells_of_is_known(tmp_path: Path) -> None:
    journals, facts = tmp_path / "journals", tmp_path / "facts"
    path, *_ = write_group(journals)
    lines = json_lines(path)
    entries = [line for line in lines if line["event"] == "message_logged"]
    (lost, *_) = [line for line in entries if line["message_hash"] is not None][5:]
    at_ms = lines[-1]["at_ms"] + 1
    again = {"wanted_from_ms": None, "log_length": len(entries), "at_ms": at_ms}
    names = "event", "message_id", "sender_id", "lamport_timestamp", "content_sha256"
    restored = [
        {name: line[name] for name in names} | {"at_ms": at_ms, "outcome": "restored"}
        for line in sorted(
            entries, key=lambda line: (line["lamport_timestamp"], line["message_id"])
        )
    ]
    kept = [line for line in lines[:-1] if line is not lost]
    path.write_bytes(journal_text([*kept, lines[0] | again, *restored]))
    same(journals, facts)


def test_tasks_have_about_the_same_work(tmp_path: Path) -> None:
    sizes = [900, 10, 10, 500, 400, 10, 300, 300, 300]
    paths = [str(tmp_path / f"{number}.jsonl.gz") for number in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        Path(path).write_bytes(bytes(size))
    new = [("ops", 0, "alice", path) for path in paths]
    shares = shares_of(new, 3)
    assert sorted(each for share in shares for each in share) == sorted(new)
    loads = [sum(Path(each[3]).stat().st_size for each in share) for share in shares]
    assert max(loads) <= sum(sizes) / 3 * 4 / 3
    assert [len(share) for share in shares_of(new, 64)] == [1] * len(new)


def test_facts_outlive_the_journals(tmp_path: Path) -> None:
    journals, facts = tmp_path / "journals", tmp_path / "facts"
    write_group(journals)
    before = same(journals, facts).verdict
    (tmp_path / "others").mkdir()
    shutil.rmtree(journals)
    done = ingest([tmp_path / "others"], facts)
    assert judge(facts, done.group).verdict.to_json() == before.to_json()


def test_the_tables_of_a_delivery_have_at_most_230_bytes(tmp_path: Path) -> None:
    write_group(tmp_path / "journals", participants=10, messages=1_000, history=10)
    run(tmp_path / "journals", tmp_path / "facts")
    files = [*(tmp_path / "facts").rglob("*.parquet")]
    of_parts = [each for each in files if "kind=verdict" not in str(each)]
    # Of short parts, each file's own headers would be most of it.
    rows = sum(
        pq.ParquetFile(each).metadata.row_group(0).column(place).total_compressed_size
        for each in of_parts
        for place in range(pq.ParquetFile(each).metadata.num_columns)
    )
    assert rows / 10_000 <= 230


def test_a_part_of_two_days_is_in_both(tmp_path: Path) -> None:
    (path, *_) = write_group(tmp_path / "journals")
    lines = json_lines(path)
    middle = len(lines) // 2
    moved = [
        line | {"at_ms": line["at_ms"] + DAY_MS * (number > middle)}
        for number, line in enumerate(lines)
    ]
    path.write_bytes(journal_text(moved))
    same(tmp_path / "journals", tmp_path / "facts")
    (row,) = [row for row in parts(tmp_path / "facts") if row["participant_id"] == "p000"]
    assert len(row["days"]) == 2


def test_a_killed_run_leaves_nothing_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_group(tmp_path / "journals")
    real, written = layout.write, list[Path]()

    def killed(path: Path, table: Any) -> None:
        if len(written) == 12:
            raise KeyboardInterrupt
        written.append(path)
        real(path, table)

    monkeypatch.setattr(layout, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "journals", tmp_path / "facts")
    monkeypatch.undo()
    known = len(parts(tmp_path / "facts"))
    done, judged = run(tmp_path / "journals", tmp_path / "facts")
    assert (done.added, done.known) == (4 - known, known)
    assert (judged.verdict.holds, judged.verdict.deliveries) == (True, 480)


def test_the_command_prints_what_check_prints(tmp_path: Path) -> None:
    paths = write_group(tmp_path / "journals")
    plant("missing", paths[1], 1)
    app = typer.Typer()
    register_commands(app)
    given = ["audit", "ingest", str(tmp_path / "journals"), "--to", str(tmp_path / "facts")]
    found = CliRunner().invoke(app, [*given, "--format", "delta"])
    expected = CliRunner().invoke(app, ["check", str(tmp_path / "journals")])
    *verdict, last = found.output.splitlines()
    assert (found.exit_code, verdict) == (1, expected.output.splitlines())
    assert last.endswith("4 journals added to " + str(tmp_path / "facts") + ", 0 known")
    assert (tmp_path / "facts" / "kind=verdict" / "_delta_log").is_dir()
