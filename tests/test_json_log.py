"""Records as JSON lines."""

import json
import logging

from reliable_channel.json_log import JsonFormatter


def test_a_record_is_one_line_with_all_that_it_has() -> None:
    extra = {"channel_id": "caf\u00e9", "sender_id": "a", "event": "send_failed"}
    try:
        raise LookupError("why")
    except LookupError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord(
        "reliable_channel", logging.WARNING, "x.py", 1, "a\n%s", ("b",), info
    )
    record.created, record.msecs = 1_700_000_000.25, 250
    vars(record).update(extra)
    line = JsonFormatter().format(record)
    assert line.isascii() and "\n" not in line
    found = json.loads(line)
    assert "LookupError: why" in found.pop("exception")
    assert found == extra | {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "WARNING",
        "logger": "reliable_channel",
        "message": "a\\nb",
    }
