"""File with the spent part of the rate limit, for channels without saved state."""

import json
from pathlib import Path

from ..engine.rate_limit import Spent
from .private_file import private


class BudgetFile:
    """Small file that is always replaced as a whole.

    Raises:
        ValueError: on `load`, the file holds something else.
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Spent | None:
        """Return the value that was saved last, or None."""
        try:
            values = json.loads(self._path.read_text())
            return Spent(_count(values["epoch_index"]), _count(values["messages"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"{self._path} is not a rate limit file: {error}; remove the file"
            ) from error

    def save(self, spent: Spent) -> None:
        """Write the value to a new file, which then replaces the old file. A crash leaves the old
        file or the new file, never a partial file."""
        beside = self._path.with_suffix(".new")
        with open(beside, "w", encoding="utf-8", opener=private) as file:
            json.dump({"epoch_index": spent.epoch_index, "messages": spent.messages}, file)
        beside.replace(self._path)


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"{value!r} is not a count of messages")
