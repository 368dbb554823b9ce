"""Plugin that adds the commands `audit …` and `check` to `reliable-channel`."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import hookimpl

if TYPE_CHECKING:
    import typer


COMMANDS: Final = {
    "journals": "Check from journals whether a channel kept its promises, and print the verdict.",
    "ingest": "Convert closed journals to Parquet files, and judge them together with the open "
    "ones.",
    "store": "Print facts about a channel from a Store alone, without any journal.",
    "archive": "Archive the content of a Store as files, each message once.",
    "compare": "Compare delivery rate, latency, holes and repairs of runs, scenarios and "
    "implementations.",
}
"""Names of the audit commands, each with the first paragraph of its help."""


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    import typer

    from reliable_channel.spi import lazy_command

    journals = f"{__package__}.commands.journals"
    lazy_command(app, "check", journals, COMMANDS["journals"])
    audit = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, summary in COMMANDS.items():
        module = {"ingest": "journals", "archive": "store"}.get(name, name)
        lazy_command(audit, name, f"{__package__}.commands.{module}", summary)
    app.add_typer(audit, name="audit", help="Commands that audit messages: journals, Stores, runs.")
