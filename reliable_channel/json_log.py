"""Log formatter that writes records as JSON lines, for machines.

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler])

The command-line flag `--log-format json` uses this formatter.
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
    """Formatter that writes each record as one JSON object, in one line of ASCII.

    The object has `time` (ISO 8601, UTC), `level`, `logger`, `message`, and `exception` if there is
    one. The object also has the extra attributes of the record, such as `channel_id` and `event`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a log record as one line of JSON."""
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
