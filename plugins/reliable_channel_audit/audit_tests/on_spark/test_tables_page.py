"""docs/facts.md and the schemas agree: every table of Spark, with its columns and types."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql.types import StructType

from reliable_channel_audit import schemas

PAGE = (Path(__file__).parents[4] / "docs" / "facts.md").read_text()
SECTIONS = {section.partition("\n")[0]: section for section in re.split("(?m)^##+ ", PAGE)[1:]}


def test_every_table_and_column_is_there_with_its_type() -> None:
    declared = {name: each for name, each in vars(schemas).items() if isinstance(each, StructType)}
    for name, table in declared.items():
        row = r"^\| `(\w+)` \| `?([^` ]+)`? \| \S[^|]*\|$"
        assert re.findall(row, SECTIONS[name.lower()], re.M) == [
            (column.name, column.dataType.simpleString()) for column in table
        ]
