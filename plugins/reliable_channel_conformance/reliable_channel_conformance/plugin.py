"""What the package adds to `reliable-channel`: the command `conformance`."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import hookimpl

if TYPE_CHECKING:
    import typer


COMMANDS: Final = {
    "conformance": "Test a program against the rules of SDS and SDS-R (docs/conformance-kit.md).",
}
"""Their names, and the first paragraph of their help."""


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add `conformance`."""
    from reliable_channel.spi import lazy_command

    for name, summary in COMMANDS.items():
        lazy_command(app, name, f"{__package__}.commands.{name}", summary)
