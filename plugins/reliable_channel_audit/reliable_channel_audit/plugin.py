"""Plugin that adds the commands `audit …` and `check` to `reliable-channel`."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import hookimpl

if TYPE_CHECKING:
    import typer


COMMANDS: Final = {
    "journals": "Print whether a channel kept its promises, from journals of its participants.",
    "ingest": "Keep what closed journals say as Parquet files, and judge them with the open ones.",
    "store": "Print what a Store alone shows of a channel, without anybody's journal.",
    "archive": "Keep what a Store has as files, each message once.",
    "compare": "Compare delivery rate, latency, holes and repairs of runs, scenarios and "
    "implementations.",
}
"""Names of the commands, with the first paragraph of their help."""


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    import typer

    from reliable_channel.spi import lazy_command

    journals = f"{__package__}.commands.journals"
    lazy_command(app, "check", journals, COMMANDS["journals"])
    audit = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, summary in COMMANDS.items():
        lazy_command(audit, name, f"{__package__}.commands.{name}", summary)
    app.add_typer(audit, name="audit", help="Audits of messages: journals, Stores, runs.")
