"""docs/tuning.md says what its records say, and these are of the runs that its plan asks for."""

import json
import re
from pathlib import Path
from typing import Final

from reliable_channel_lab.sweep import Record, page_text, read_plan, to_line

DOCS: Final = Path(__file__).parents[4] / "docs"
COMMAND: Final = "reliable-channel sweep docs/tuning.toml --page docs/tuning.md"


def records() -> dict[str, Record]:
    lines = (DOCS / "tuning" / "results.jsonl").read_text().splitlines()
    assert lines == [to_line(json.loads(line)) for line in lines]
    return {record["id"]: record for record in map(json.loads, lines)}


def test_there_is_a_record_of_each_run_and_no_other() -> None:
    assert records().keys() == {run.id for run in read_plan(DOCS / "tuning.toml").runs}


def test_the_page_is_what_the_records_make_it() -> None:
    plan, page = read_plan(DOCS / "tuning.toml"), (DOCS / "tuning.md").read_text()
    assert page_text(plan, records(), command=COMMAND, plots="tuning") == page, (
        "run `make docs WHAT=tuning`"
    )


def test_each_picture_is_there_and_is_one() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (DOCS / "tuning.md").read_text())
    assert len(pictures) >= 8
    for picture in pictures:
        assert (DOCS / picture).read_bytes().rstrip().endswith(b"</svg>")
    assert {path.name for path in (DOCS / "tuning").glob("*.svg")} == {
        Path(picture).name for picture in pictures
    }
