"""The directory of a sweep: a file of records for each batch that was finished.

A batch is there whole or not at all, so that whoever was killed loses the batches it was at, and
who goes on does what is not there. The files' names and number say nothing: what counts is the set
of records.
"""

import json
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from .runs import Record, to_line

_SUFFIX: Final = ".jsonl"


def write_batch(directory: Path, records: Iterable[Record]) -> None:
    """Add the records of a batch, all at once."""
    lines = "".join(to_line(record) + "\n" for record in records).encode()
    name = sha256(lines).hexdigest()[:16]
    unfinished = directory / f"{name}.{os.getpid()}.unfinished"
    with unfinished.open("wb") as file:
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(directory / (name + _SUFFIX))


def read_results(directory: Path) -> dict[str, Record]:
    """All records by id, in the order of the ids.

    Raises:
        ValueError: a file is damaged, or two records of one run differ.
        OSError: the directory cannot be read.
    """
    found: dict[str, Record] = {}
    for path in sorted(directory.glob("*" + _SUFFIX)):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                record = json.loads(line)
                known = found.setdefault(record["id"], record)
            except (ValueError, TypeError, KeyError):
                raise ValueError(f"{path}:{number}: it is no record; remove the file") from None
            if known != record:
                raise ValueError(
                    f"{path}:{number}: run {record['id']} has another record elsewhere in "
                    f"{directory}; one is of other code: begin with an empty directory"
                )
    return dict(sorted(found.items()))


def write_records(path: Path, records: Mapping[str, Record]) -> None:
    """Write records to one file, in the order of their ids."""
    path.write_text("".join(to_line(records[key]) + "\n" for key in sorted(records)))


def digest(records: Mapping[str, Record]) -> str:
    """Hex sha256 of records, in the order of their ids: equal for equal results."""
    joined = "".join(to_line(records[key]) + "\n" for key in sorted(records))
    return sha256(joined.encode()).hexdigest()
