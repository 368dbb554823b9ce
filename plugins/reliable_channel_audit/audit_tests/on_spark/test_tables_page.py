"""docs/tables.md and the schemas agree: every table and column, its key, and what it refers to."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql.types import StructType

from reliable_channel_audit import schemas

PAGE = Path(__file__).parents[4] / "docs" / "tables.md"
SECTIONS = {
    section.partition("\n")[0]: section for section in re.split("(?m)^## ", PAGE.read_text())[1:]
}
KEYS = {
    name: re.findall(r"`(\w+)`", line)
    for name, section in SECTIONS.items()
    for line in re.findall("^Key: .*", section, re.MULTILINE)
}


def test_every_table_and_column_is_there_with_its_type() -> None:
    declared = {name: each for name, each in vars(schemas).items() if isinstance(each, StructType)}
    assert {
        name: re.findall(r"^\| `(\w+)` \| `?([^` ]+)`? \| [^|]*\| \S[^|]*\|$", section, re.M)
        for name, section in SECTIONS.items()
    } == {
        name: [(column.name, column.dataType.simpleString()) for column in table]
        for name, table in declared.items()
    }


def test_keys_and_references_are_columns() -> None:
    assert KEYS.keys() == SECTIONS.keys()
    for name, section in SECTIONS.items():
        assert {*KEYS[name]} <= {*getattr(schemas, name).names}
        for columns, other, anchor in re.findall(r"^(`.*) → \[(\w+)\]\(#(\w+)\)", section, re.M):
            assert {*re.findall(r"\w+", columns)} <= {*getattr(schemas, name).names}
            assert other in SECTIONS and anchor == other.lower()
