"""docs/tables.md and the schemas agree: every table and column, its key, and what it refers to."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from pyspark.sql.types import StructType

from docs import tables
from docs.tables import COLUMNS, PAGE, PICTURE, TABLES, Table
from reliable_channel_audit import schemas
from reliable_channel_audit.facts import facts_of
from reliable_channel_audit.journals import journal_files, participants

from ..generated import write_group
from ..planted import plant


def test_the_page_and_its_picture_are_up_to_date() -> None:
    assert PAGE.read_text() == tables.page()
    assert PICTURE.read_text() == tables.picture()


def test_every_table_is_there_once() -> None:
    declared = {name for name in vars(schemas) if isinstance(getattr(schemas, name), StructType)}
    assert sorted(table.name for table in TABLES) == sorted(declared - {"FACT", "RARE"})
    assert {schemas.FACTS[name] for name in schemas.FACTS} <= {table.schema for table in TABLES}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_keys_and_references_are_columns(table: Table) -> None:
    names = set(table.schema.names)
    assert names >= {*table.key, *table.columns}
    for columns, other in table.refers.items():
        assert names >= set(columns.split(", "))
        assert other in {each.name for each in TABLES}


def test_nothing_is_declared_of_columns_that_are_not_there() -> None:
    used = {column for table in TABLES for column in table.schema.names}
    assert set(COLUMNS) <= used


def test_the_picture_has_a_box_for_every_table() -> None:
    texts = {each.text for each in ElementTree.parse(PICTURE).iter() if each.tag.endswith("text")}
    assert {table.name for table in TABLES} <= texts


def test_keys_are_unique(tmp_path: Path) -> None:
    """In the facts of a group with faults."""
    (first, second, *_) = write_group(tmp_path, loss=0.3)
    plant("duplicate", first, 1)
    plant("garbage", second, 1)
    group, _ = participants(journal_files([tmp_path]))
    facts = [fact for each in group for fact in facts_of(each)]
    keys = {schemas.FACTS[name].simpleString(): name for name in schemas.FACTS}
    for table in TABLES:
        kind = keys.get(table.schema.simpleString())
        rows = [fact for fact in facts if type(fact).__name__ == kind]
        found = [tuple(getattr(row, column) for column in table.key) for row in rows]
        assert not table.key or len(set(found)) == len(found), table.name
    assert {type(fact).__name__ for fact in facts} > {"Life", "Delivery", "Dispatch", "Lag", "Deed"}
