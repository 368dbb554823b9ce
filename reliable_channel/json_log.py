"""Log records as JSON lines, for programs whose log a machine reads.

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler])

The command line has it as `--log-format json`.
"""

import json
import logging
import time
from typing import Final

from ._terminal_text import printable

__all__ = ["JsonFormatter"]

_ALWAYS: Final = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}
"""What every record has; other attributes were given with `extra`."""


class JsonFormatter(logging.Formatter):
    """One JSON object for each record, in one line of ASCII.

    It has `time` (ISO 8601, UTC), `level`, `logger`, `message`, `exception` if there is one, and
    what the record has beside: of channels `channel_id`, `sender_id` and `event`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        values: dict[str, object] = {
            "time": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": printable(record.getMessage()),
        }
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        given = {name: value for name, value in vars(record).items() if name not in _ALWAYS}
        return json.dumps(given | values, default=str)

    converter = staticmethod(time.gmtime)
