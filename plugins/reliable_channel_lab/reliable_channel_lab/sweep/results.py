"""Directory of a sweep's results, with a file of records for each finished batch.

The results of a batch are written completely or not at all. A killed process loses its unfinished
batches, and the next process runs them again. Results depend only on the set of records, not on the
division into batches.
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
    """Return the path of the file for a batch with the given run ids."""
    name = sha256(" ".join(sorted(ids)).encode()).hexdigest()[:16]
    return directory / (name + _SUFFIX)


def write_batch(directory: Path, records: Sequence[Record]) -> None:
    """Write the records of a batch to a file, all at once."""
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
                raise ValueError(
                    f"{path}:{number}: the line is not a record of a run; remove the file"
                ) from None
            if known != record:
                raise ValueError(
                    f"{path}:{number}: run {record['id']} has a different record elsewhere in "
                    f"{directory}; different code wrote the records: begin with an empty directory"
                )
    return dict(sorted(found.items()))


def write_records(path: Path, records: Mapping[str, Record]) -> None:
    """Write all records to one file, in the order of their ids."""
    path.write_text(_lines(records), encoding="utf-8")


def digest(records: Mapping[str, Record]) -> str:
    """Return the SHA-256 of all records in the order of their ids, in hex."""
    return sha256(_lines(records).encode()).hexdigest()


def _lines(records: Mapping[str, Record]) -> str:
    return "".join(to_line(records[key]) + "\n" for key in sorted(records))
