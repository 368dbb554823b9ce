"""Delta logs in a directory of facts: each folder `kind=…` is then a Delta table as well."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from . import layout
from .views import partitions_of, plain_schema


def write_delta_logs(directory: Path) -> None:
    """Bring the Delta log of each kind to the files that are there now, in one new version.

    The files of facts stay as they are. A run that was killed before its log was written is in the
    version of the next run.
    """
    for kind in layout.SCHEMAS:
        folder = directory / f"kind={kind}"
        if not folder.exists():
            continue
        schema, names = plain_schema(kind), [each.name for each in partitions_of(kind)]
        table = DeltaTable.create(folder, schema, mode="ignore", partition_by=names)
        here = {str(path.relative_to(folder)): path for path in folder.glob("*=*/**/*.parquet")}
        known = {*map(unquote, table.get_add_actions()["path"].to_pylist())}
        is_grown = known <= here.keys()
        new = [_added(name, here[name]) for name in here.keys() - (known if is_grown else set())]
        if new or not is_grown:
            mode = "append" if is_grown else "overwrite"
            table.create_write_transaction(new, mode, schema, names)


def _added(logged: str, path: Path) -> AddAction:
    status = path.stat()
    pairs = (part.split("=", 1) for part in Path(logged).parts[:-1])
    values = {name: unquote(value) for name, value in pairs}
    rows = f'{{"numRecords": {pq.read_metadata(path).num_rows}}}'
    modified_ms = status.st_mtime_ns // 1_000_000
    return AddAction(logged, status.st_size, values, modified_ms, data_change=True, stats=rows)
