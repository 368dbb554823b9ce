"""Keeps requests of this package out of the log lines of httpcore, below httpx.

A poll several times a second would fill a log at level DEBUG. Other requests of the same program
through httpx are logged as before.
"""

import logging
from contextvars import ContextVar
from typing import Final

LOGGERS: Final = ("httpcore.connection", "httpcore.http11", "httpcore.proxy")
_ours: Final = ContextVar("waku_request", default=False)


class Quiet:
    """A block whose requests are not logged by httpcore."""

    def __enter__(self) -> None:
        self._token = _ours.set(True)

    def __exit__(self, *exc_info: object) -> None:
        _ours.reset(self._token)


def _is_not_ours(record: logging.LogRecord) -> bool:
    return not _ours.get()


for _name in LOGGERS:
    logging.getLogger(_name).addFilter(_is_not_ours)
