"""Options of commands that can run on Spark."""

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
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise typer.BadParameter(
                f"{text!r} is not a setting of Spark; write for example spark.executor.memory=4g",
                param_hint="--conf",
            )
        found[name] = value
    return found
