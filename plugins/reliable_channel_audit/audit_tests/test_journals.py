"""Journals on disk: whatever somebody puts there, what can be read is read and the rest counted."""

import gzip
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from reliable_channel.runtime.journal import JOURNAL_FORMAT, Journal
from reliable_channel_audit import journals
from reliable_channel_audit.check import check
from reliable_channel_audit.journals import group_of, journal_files, lived, options_of, texts
from reliable_channel_audit.lines import Line, line_of
from reliable_channel_audit.verdict import Value, Verdict
from tests.journal_lines import journal_text, json_lines

from .generated import EPOCH_MS, write_group


def opened(**values: Any) -> str:
    return json.dumps(
        {
            "event": "journal_opened",
            "at_ms": EPOCH_MS,
            "format": JOURNAL_FORMAT,
            "channel_id": "general",
            "sender_id": "alice",
            "wanted_from_ms": 0,
            "log_length": 0,
            "options": {},
        }
        | values
    )


def aside(verdict: Verdict) -> list[tuple[str, int, int]]:
    return [(each.reason, each.lines, each.first_line) for each in verdict.set_aside]


def test_directories_hold_journals_however_deep(tmp_path: Path) -> None:
    write_group(tmp_path / "some" / "where", participants=2, messages=5)
    (tmp_path / "notes.txt").write_text("not a journal")
    assert [path.name for path in journal_files([tmp_path])] == ["p000.jsonl", "p001.jsonl"]
    assert check([tmp_path]).deliveries == 10


def test_where_there_is_no_journal_nothing_is_known(tmp_path: Path) -> None:
    assert check([tmp_path]).value is Value.UNKNOWN
    with pytest.raises(ValueError, match=r"no journals in .*; the command looked for .*\.jsonl"):
        journal_files([tmp_path])
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        check([tmp_path / "nowhere"])


def test_packed_journals_say_the_same(tmp_path: Path) -> None:
    plain = write_group(tmp_path, messages=20)
    expected = check([tmp_path])
    for path in plain:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert check([tmp_path]) == expected


def test_a_packed_journal_that_breaks_off_is_read_so_far(tmp_path: Path) -> None:
    (path, *_) = write_group(tmp_path, participants=1, messages=50)
    packed = gzip.compress(path.read_bytes())
    path.unlink()
    (tmp_path / "p000.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    verdict = check([tmp_path])
    assert 0 < verdict.deliveries < 50
    assert verdict.set_aside[-1].reason.startswith("the file cannot be read on")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"event":"wire_o', "not JSON: torn, or not of a journal"),
        (b'{"event":"sync_sent","at_ms":1,"message_id":"\xff"}', "not UTF-8"),
        (b"[1, 2]", "not a JSON object"),
        (b"[" * 100_000, "not JSON: torn, or not of a journal"),
        (b'{"at_ms":1}', "no event"),
        (b'{"event":"sighed","at_ms":1}', "unknown event"),
        (b'{"event":"sync_sent"}', "bad value in sync_sent: Object missing required field `at_ms`"),
        (
            b'{"event":"sync_sent","at_ms":1e3}',
            "bad value in sync_sent: Expected `int`, got `float`",
        ),
        (
            b'{"event":"sync_sent","at_ms":1,"message_id":7}',
            "bad value in sync_sent: Expected `str | null`, got `int` - at `$.message_id`",
        ),
        (b'{"event":"sync_sent","at_ms":NaN}', "bad value in sync_sent: JSON is malformed"),
        (b'{"event":"message_lost","at_ms":1,"retrieval_hint":"xy"}', "bad value in message_lost"),
        (b'{"event":"wire_in","at_ms":1,"payload":"?"}', "bad value in wire_in"),
        (b'{"event":"wire_in","at_ms":1,"message_hash":7}', "bad value in wire_in"),
        (b'{"event":"message_missing","at_ms":1,"missing":[{}]}', "bad value in message_missing"),
        (b'{"event":"repair_requested","at_ms":1,"message_ids":5}', "bad value in repair_req"),
        (b'{"event":"message_logged","at_ms":1,"lamport_timestamp":9223372036854775808}', "bad"),
    ],
)
def test_a_bad_line_costs_only_itself(tmp_path: Path, line: bytes, reason: str) -> None:
    (path, *_) = write_group(tmp_path, messages=20)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:5], line, b"", *lines[5:]]) + b"\n")
    verdict = check([tmp_path])
    assert not verdict.findings
    ((why, count, number),) = aside(verdict)
    assert why.startswith(reason)
    assert (count, number) == (1, 6)


def test_an_endless_line_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "MAX_LINE_BYTES", 10_000)
    (path, *_) = write_group(tmp_path, messages=20)
    lines = path.read_bytes().splitlines()
    for long in (b"x" * 10_000, b"x" * 35_000):
        path.write_bytes(b"\n".join([*lines[:5], long, *lines[5:]]) + b"\n")
        verdict = check([tmp_path])
        assert not verdict.findings
        assert aside(verdict) == [("longer than 10000 bytes", 1, 6)]


@pytest.mark.parametrize("name", ["sds-journal/1", "sds-journal/2", "sds-journal/3"])
def test_sessions_of_another_format_are_counted(tmp_path: Path, name: str) -> None:
    path = tmp_path / "alice.jsonl"
    old = opened(format=name)
    sync = '{"event":"sync_sent","at_ms":1,"message_id":"a"}'
    path.write_text("\n".join([sync, old, sync, opened(), sync]) + "\n")
    verdict = check([path])
    assert verdict.lives == 1
    assert aside(verdict) == [
        ("before journal_opened: its participant is unknown", 1, 1),
        (f"format '{name}'; this reads reliable-channel-journal/1", 2, 2),
    ]


def test_what_a_journal_says_that_it_lacks_is_set_aside_and_nobody_is_blamed_for_it(
    tmp_path: Path,
) -> None:
    alice, *_ = write_group(tmp_path, messages=60)
    lines = alice.read_bytes().splitlines(keepends=True)
    begin, end = len(lines) // 3, 2 * len(lines) // 3
    while end < len(lines) and b'"fresh"' not in lines[end]:
        end += 1  # a journal begins its numbers anew after a gap
    gap = {"event": "journal_gap", "at_ms": 9, "from_ms": 7, "lines": end - begin, "reason": "full"}
    text = [*lines[:begin], json.dumps(gap).encode() + b"\n", *lines[end:]]
    alice.write_bytes(b"".join(text))
    verdict = check([tmp_path])
    said = (
        f"{end - begin} lines are missing from 7 to 9 ms: the journal could not be written (full)"
    )
    assert aside(verdict) == [(said, 1, begin + 1)]
    assert not verdict.findings


def test_sessions_of_another_participant_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "alice.jsonl"
    path.write_text("\n".join([opened(), opened(sender_id="bob"), opened()]) + "\n")
    verdict = check([path])
    assert aside(verdict) == [("of another participant than 'alice', whose journal this is", 1, 2)]


def test_a_file_of_nobody_is_counted(tmp_path: Path) -> None:
    write_group(tmp_path, participants=1, messages=1)
    (tmp_path / "poem.jsonl").write_text("Es war, als hätt der Himmel\n")
    assert aside(check([tmp_path])) == [("no journal_opened: its participant is unknown", 0, 0)]


def test_journals_with_whole_payloads_say_the_same(tmp_path: Path) -> None:
    paths = write_group(tmp_path, messages=60)
    expected = check([tmp_path])
    size = sum(path.stat().st_size for path in paths)
    for path in paths:
        path.write_text("".join(json.dumps(line) + "\n" for line in json_lines(path)))
    assert check([tmp_path]) == expected
    assert sum(path.stat().st_size for path in paths) > size


def test_bytes_of_a_line_that_is_lost_are_missed_where_they_are_needed(tmp_path: Path) -> None:
    (path, *_) = write_group(tmp_path, messages=60)
    lines = path.read_bytes().splitlines()
    (first, *_) = (n for n, line in enumerate(lines) if b'"event":"wire_' in line)
    lines[first] = b'{"event":"wire_o'
    path.write_bytes(b"\n".join(lines) + b"\n")
    verdict = check([tmp_path])
    assert not verdict.findings
    reasons = [reason for reason, _, _ in aside(verdict)]
    assert reasons == [
        "its bytes stand in a line that could not be read",
        "not JSON: torn, or not of a journal",
    ]


def in_parts(path: Path, *, begin: int = 1, count: int = 3, seen: int = 0) -> list[Path]:
    """Cut a journal, as its writer does where it is long."""
    lines = json_lines(path)
    header = lines[0] | {"wanted_from_ms": None}
    size = len(lines) // count + 1
    parts = [lines[at : at + size] for at in range(0, len(lines), size)]
    names = [path.with_name(f"{path.stem}.{begin + n:04}.jsonl") for n in range(count - 1)]
    before = None
    for part, name in zip(parts, [*names, path], strict=True):
        if before is not None:
            at_ms = part[0]["at_ms"]
            opened = header | {"at_ms": at_ms, "follows": f"{before}.gz", "log_length": seen}
            part.insert(0, opened)
        seen += [line["event"] for line in part].count("message_logged")
        name.write_text("".join(json.dumps(line) + "\n" for line in part))
        before = name.name
    return [*names, path]


def test_parts_of_a_journal_are_one(tmp_path: Path) -> None:
    (one, *_) = write_group(tmp_path, messages=60)
    expected = check([tmp_path])
    parts = in_parts(one)
    assert check([tmp_path]).to_json().replace(parts[0].name, one.name) == expected.to_json()
    packed = parts[0].with_name(f"{parts[0].name}.gz")
    packed.write_bytes(gzip.compress(parts[0].read_bytes()))  # killed before it took the other away
    verdict = check([tmp_path])
    assert verdict.deliveries == expected.deliveries
    assert [each.path for each in verdict.set_aside] == [str(parts[0])]
    assert check([one]).deliveries == 60


def test_what_was_packed_by_hand_may_be_older_than_all_parts(tmp_path: Path) -> None:
    (one, *_) = write_group(tmp_path, messages=60)
    expected = check([tmp_path])
    lines = json_lines(one)
    first, rest = lines[: len(lines) // 4], lines[len(lines) // 4 :]
    one.with_name(f"{one.name}.gz").write_bytes(gzip.compress(journal_text(first)))
    seen = [line["event"] for line in first].count("message_logged")
    again = {"wanted_from_ms": None, "log_length": seen, "at_ms": rest[0]["at_ms"]}
    one.write_bytes(journal_text([lines[0] | again, *rest]))
    in_parts(one, count=2, seen=seen)
    verdict = check([tmp_path])
    assert (verdict.lives, verdict.deliveries, verdict.broken) == (4, expected.deliveries, {})


def test_parts_are_in_order_whatever_the_clock_did(tmp_path: Path) -> None:
    (one, *_) = write_group(tmp_path, messages=60)
    parts = in_parts(one)
    lines = json_lines(parts[1])
    for line in lines:
        line["at_ms"] -= 3_600_000
    parts[1].write_text("".join(json.dumps(line) + "\n" for line in lines))
    verdict = check([tmp_path])
    assert set(verdict.broken) == {"clock"}
    assert verdict.lives == 4


def test_without_its_first_part_a_journal_begins_later(tmp_path: Path) -> None:
    (one, *_) = write_group(tmp_path, messages=60)
    in_parts(one)[0].unlink()
    verdict = check([tmp_path])
    assert not verdict.findings
    assert 180 < verdict.deliveries < 240


def lives(*paths: Path) -> list[tuple[str, int]]:
    (whose,) = group_of(paths).participants
    noted = lived(whose.channel_id, whose.participant_id, whose.paths)
    return [(Path(each.path).stem, each.life) for each in noted]


def test_a_new_life_begins_with_a_new_log(tmp_path: Path) -> None:
    again = opened(wanted_from_ms=None, log_length=3)
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([opened(), again, opened(), again]) + "\n")
    assert [life for _, life in lives(path)] == [0, 0, 1, 1]


def test_files_follow_each_other_in_time(tmp_path: Path) -> None:
    later, earlier = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    later.write_text(opened(at_ms=EPOCH_MS + 5, wanted_from_ms=None) + "\n")
    earlier.write_text(opened() + "\n")
    assert lives(later, earlier) == [("b", 0), ("a", 0)]


def test_what_is_known_of_a_line_is_typed() -> None:
    text = b'{"event":"message_acknowledged","at_ms":5,"message_id":"a","source":"bloom_filter"}'
    expected = Line("message_acknowledged", 5, "a", source="bloom_filter", record=text.decode())
    assert line_of(text) == expected


def test_options_are_listed_with_the_seed_of_each_participant(tmp_path: Path) -> None:
    for number in range(7):
        path = tmp_path / f"p{number}.jsonl"
        with Journal(path, channel_id="c", sender_id=path.stem, content_topic="/t") as journal:
            options = {"seed": 9 + number, "bloom_capacity": 60, "retry_interval_ms": 30_000}
            journal.opened(at_ms=1, wanted_from_ms=0, log_length=0, options=options)
    group = group_of(journal_files([tmp_path])).participants
    formats, found = options_of(group)
    assert formats == [JOURNAL_FORMAT]
    assert found == {"bloom_capacity": "60", "seed": "9, 10, 11, 12, 13 and 2 more"}


def test_a_byte_order_mark_hides_no_line() -> None:
    file = BytesIO(b"\xef\xbb\xbf{}\r\n{}\r\n")
    assert [json.loads(text) for text in texts(file) if isinstance(text, bytes)] == [{}, {}]
