"""What the package adds to `reliable-channel`: the commands `check`, `audit`,
`audit-store`, `archive` and `group-reliability`."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import hookimpl

if TYPE_CHECKING:
    import typer


COMMANDS: Final = {
    "check": "Say whether a channel kept its promises, from journals of its participants.",
    "audit": "Say whether a channel kept its promises, and write a report of how it did.",
    "audit-store": "Say what a Store alone shows of a channel, without anybody's journal.",
    "archive": "Keep what a Store has as files, each message once.",
    "group-reliability": "Measure delivery rate, latency, holes and repairs, by scenario and "
    "implementation.",
}
"""Their names, and the first paragraph of their help."""


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add the commands."""
    from reliable_channel.spi import lazy_command

    for name, summary in COMMANDS.items():
        lazy_command(app, name, f"{__package__}.commands.{name.replace('-', '_')}", summary)
