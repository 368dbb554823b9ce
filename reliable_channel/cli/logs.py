"""Flags `-v` and `--log-level` of every command, for the log on standard error."""

import logging
from typing import Annotated, Any, Final, Literal, get_args

import typer

from .console import PrintableFormatter

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["text", "json"]
LOGGERS: Final = ("reliable_channel", "waku")
_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_stderr(level: str) -> None:
    """Write log records of a level or above to standard error, one printable line each."""
    _handle(PrintableFormatter(_FORMAT))
    for name in LOGGERS:
        logging.getLogger(name).setLevel(level.upper())


def _handle(formatter: logging.Formatter) -> None:
    if not logging.root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(formatter)
        logging.root.addHandler(handler)


def log_options() -> list[Any]:
    """Return the flags `-v` and `--log-level` as parameters of a command."""
    carrier = typer.Typer(add_completion=False)
    carrier.command()(_flags)
    return list(typer.main.get_command(carrier).params)


def _verbose(count: int) -> None:
    if count:
        log_to_stderr("info" if count == 1 else "debug")


def _level(level: str | None) -> None:
    if level is not None:
        log_to_stderr(level)


def _format(name: str | None) -> None:
    if name == "json":
        from ..json_log import JsonFormatter

        _handle(JsonFormatter())


def _flags(
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            expose_value=False,
            callback=_verbose,
            show_default=False,
            metavar="",
            help="Log to standard error. -vv logs every message.",
        ),
    ] = 0,
    log_format: Annotated[
        Format | None,
        typer.Option(
            is_eager=True,
            expose_value=False,
            callback=_format,
            envvar="RELIABLE_CHANNEL_LOG_FORMAT",
            metavar="FORMAT",
            help=f"Format of the log lines: {' or '.join(get_args(Format))}.",
        ),
    ] = None,
    log_level: Annotated[
        Level | None,
        typer.Option(
            expose_value=False,
            callback=_level,
            envvar="RELIABLE_CHANNEL_LOG_LEVEL",
            metavar="LEVEL",
            help=f"Level of the log: {', '.join(get_args(Level))}.",
        ),
    ] = None,
) -> None:
    """Never called: other commands take its parameters."""
