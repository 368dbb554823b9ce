"""docs/tables.md and the schemas agree: every table and column, its key, and what it refers to."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql.types import StructType

from reliable_channel_audit import schemas
from reliable_channel_audit.facts import facts_of
from reliable_channel_audit.journals import group_of, journal_files

from ..generated import write_group
from ..planted import plant

PAGE = Path(__file__).parents[4] / "docs" / "tables.md"
SECTIONS = {
    section.partition("\n")[0]: section for section in re.split("(?m)^### ", PAGE.read_text())[1:]
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
        if name not in ("FACT", "RARE")
    }


def test_keys_and_references_are_columns() -> None:
    assert KEYS.keys() == SECTIONS.keys()
    for name, section in SECTIONS.items():
        assert {*KEYS[name]} <= {*getattr(schemas, name).names}
        for columns, other, anchor in re.findall(r"^(`.*) → \[(\w+)\]\(#(\w+)\)", section, re.M):
            assert {*re.findall(r"\w+", columns)} <= {*getattr(schemas, name).names}
            assert other in SECTIONS and anchor == other.lower()


def test_keys_are_unique(tmp_path: Path) -> None:
    """In the facts of a group with faults."""
    (first, second, *_) = write_group(tmp_path, loss=0.3)
    plant("duplicate", first, 1)
    plant("garbage", second, 1)
    group = group_of(journal_files([tmp_path])).participants
    facts = [fact for each in group for fact in facts_of(each)]
    names = {schemas.FACTS[kind].simpleString(): kind for kind in schemas.FACTS}
    for table, key in KEYS.items():
        kind = names.get(getattr(schemas, table).simpleString())
        rows = [fact for fact in facts if type(fact).__name__ == kind]
        found = [tuple(getattr(row, column) for column in key) for row in rows]
        assert not key or len(set(found)) == len(found), table
    assert {type(fact).__name__ for fact in facts} > {"Life", "Delivery", "Dispatch", "Lag", "Deed"}
