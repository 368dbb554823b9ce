"""Plugin that adds the command `conformance` to `reliable-channel`."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import hookimpl

if TYPE_CHECKING:
    import typer


COMMANDS: Final = {
    "conformance": "Test a program against the rules of SDS and SDS-R (docs/conformance-kit.md).",
}
"""Names of the commands, each with the first paragraph of its help."""


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add the command `conformance` to the program."""
    from reliable_channel.spi import lazy_command

    for name, summary in COMMANDS.items():
        lazy_command(app, name, f"{__package__}.commands.{name}", summary)
