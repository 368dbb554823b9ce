"""What steps change, collected and added up."""

from reliable_channel.sds.changes import NO_RECORDER, Changes, LogRow, Recorder, Table

NOTES = Table("notes", (("name", "TEXT"), ("value", "TEXT")))


def row(number: int, hint: bytes | None = None) -> LogRow:
    return f"m{number}", "alice", number, b"content", hint


def test_a_recorder_hands_out_each_change_once() -> None:
    recorder = Recorder()
    assert not recorder.take()
    recorder.put(NOTES, "a", "first")
    recorder.put(NOTES, "a", "second")
    recorder.delete(NOTES, "b")
    assert recorder.take().rows == {(NOTES, "a"): ("a", "second"), (NOTES, "b"): None}
    recorder.trim((4, "m4"))
    trimmed = recorder.take()
    assert trimmed and trimmed.trimmed_below == (4, "m4")
    assert not recorder.take()


def test_a_hint_is_part_of_an_entry_that_is_not_written_yet() -> None:
    recorder = Recorder()
    recorder.log(row(1))
    for number in (1, 2):
        recorder.hint(row(number, b"hint"))
    changes = recorder.take()
    assert (changes.entries, changes.hints) == ({"m1": row(1, b"hint")}, {"m2": row(2, b"hint")})


def test_entries_that_no_archive_has_yet_are_counted_by_their_place() -> None:
    recorder = Recorder()
    for number in (1, 2, 3):
        recorder.log(row(number))
    assert recorder.logged((2, ""), (3, "m3")) == 1
    recorder.remove("m2")
    assert recorder.logged((2, ""), (3, "m3")) == 0
    recorder.take()
    assert recorder.logged((0, ""), (9, "")) == 0


def test_a_removal_takes_back_what_an_earlier_step_recorded() -> None:
    changes = Changes(hints={"m1": row(1), "m2": row(2)}, entries={"m1": row(1)})
    changes.add(Changes(removed={"m1"}))
    assert changes == Changes(hints={"m2": row(2)}, removed={"m1"})


def test_steps_are_added_up_in_their_order() -> None:
    changes = Changes(entries={"m1": row(1)}, rows={(NOTES, "a"): ("a", "first")})
    changes.add(
        Changes(
            entries={"m2": row(2)},
            hints={"m1": row(1, b"hint")},
            trimmed_below=(1, "m1"),
            rows={(NOTES, "a"): None},
        )
    )
    changes.add(Changes())
    assert changes == Changes(
        entries={"m1": row(1, b"hint"), "m2": row(2)},
        trimmed_below=(1, "m1"),
        rows={(NOTES, "a"): None},
    )


def test_what_begins_from_nothing_each_time_records_nothing() -> None:
    assert not NO_RECORDER.records
    NO_RECORDER.put(NOTES, "a", "first")
    NO_RECORDER.delete(NOTES, "b")
    NO_RECORDER.log(row(1))
    NO_RECORDER.hint(row(1, b"hint"))
    NO_RECORDER.remove("m2")
    NO_RECORDER.trim((4, "m4"))
    assert not NO_RECORDER.take()
