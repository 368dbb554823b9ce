"""Options of commands that can run on Spark."""

import re
from typing import Annotated, Final

import typer

MASTER_HELP: Final = "A master of Spark: local[*] or spark://host:7077."
REMOTE_HELP: Final = "A server of Spark Connect, sc://host:15002."
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", metavar="NAME=VALUE", help="Setting of Spark, such as spark.executor.memory=4g."
    ),
]


def settings(given: list[str] | None) -> dict[str, str]:
    """Return Spark's settings by name, from texts of the form `NAME=VALUE`.

    Raises:
        typer.BadParameter: one is no `spark.name=value`.
    """
    for text in given or ():
        if not re.fullmatch(r"spark\.[^=]*=.*", text, re.DOTALL):
            raise typer.BadParameter(
                f"{text!r} is not a setting of Spark; write for example spark.executor.memory=4g",
                param_hint="--conf",
            )
    return {name: value for name, _, value in (text.partition("=") for text in given or ())}
