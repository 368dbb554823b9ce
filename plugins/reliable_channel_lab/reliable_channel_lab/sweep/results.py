"""Directory of a sweep, with a file of records for each finished batch.

A batch is written completely or not at all. A killed process loses its unfinished batches, and the
next one repeats them. Only the set of records counts, not their batches.
"""

import json
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from .runs import Record, to_line

_SUFFIX: Final = ".jsonl"


def batch_path(directory: Path, ids: Iterable[str]) -> Path:
    """Return the path of the records of these runs, if they are one batch."""
    name = sha256(" ".join(sorted(ids)).encode()).hexdigest()[:16]
    return directory / (name + _SUFFIX)


def write_batch(directory: Path, records: Sequence[Record]) -> None:
    """Add the records of a batch, all at once."""
    path = batch_path(directory, (str(record["id"]) for record in records))
    unfinished = path.with_suffix(f".{socket.gethostname()}.{os.getpid()}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(to_line(record) + "\n" for record in records)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def read_results(directory: Path) -> dict[str, Record]:
    """Return all records by id, in the order of the ids.

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
                raise ValueError(f"{path}:{number}: it is not a record; remove the file") from None
            if known != record:
                raise ValueError(
                    f"{path}:{number}: run {record['id']} has another record elsewhere in "
                    f"{directory}; one is of other code: begin with an empty directory"
                )
    return dict(sorted(found.items()))


def write_records(path: Path, records: Mapping[str, Record]) -> None:
    """Write records to one file, in the order of their ids."""
    path.write_text(_lines(records), encoding="utf-8")


def digest(records: Mapping[str, Record]) -> str:
    """Return the hex sha256 of records in the order of their ids, equal for equal results."""
    return sha256(_lines(records).encode()).hexdigest()


def _lines(records: Mapping[str, Record]) -> str:
    return "".join(to_line(records[key]) + "\n" for key in sorted(records))
