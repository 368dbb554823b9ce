"""The commands `reliable-channel bot …`."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import anyio
import typer

from reliable_channel.config import FILE_VARIABLE
from reliable_channel.spi import StateError

from ..key_file import PASSPHRASE_VARIABLE, KeyFileError, needs_passphrase, read_key, write_key
from ..wire.chats import Community
from ..wire.keys import PrivateKey

AsJson = Annotated[bool, typer.Option("--json", help="Print the outcome as a JSON line.")]
Target = Annotated[
    str,
    typer.Argument(
        help="Bot to run: bot.py, bot.py:name or package.module:name. Default name: bot."
    ),
]
WithPassphrase = Annotated[
    bool,
    typer.Option(
        "--passphrase",
        help=(
            "Encrypt the key with a passphrase: ask for the passphrase, or read it from "
            f"{PASSPHRASE_VARIABLE}."
        ),
    ),
]


def register(app: typer.Typer) -> None:
    app.command()(key)
    app.command()(new)
    app.command()(run)
    app.command()(doctor)


def key(
    file: Annotated[Path, typer.Argument(help="Path of the key file.")] = Path("bot.key"),
    with_passphrase: WithPassphrase = False,
    show: Annotated[
        bool, typer.Option("--show", help="Only print the public key of the key file.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a bot's key in a file that only you may read, and print its public key.

    The private key is never shown. Keep the key file, because the key is the bot's identity.
    """
    try:
        if show:
            passphrase = _passphrase(is_new=False) if needs_passphrase(file) else None
            found = read_key(file, passphrase)
        else:
            found = PrivateKey.generate()
            write_key(file, found, _passphrase(is_new=True) if with_passphrase else None)
    except (KeyFileError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    _print(found.public_key.hex, file, as_json)


def new(
    folder: Annotated[Path, typer.Argument(help="Folder of the new project.")],
    community: Annotated[str, typer.Option(help="Id or key of the community.")],
    channel: Annotated[
        list[str] | None,
        typer.Option(
            help="Uuid of a channel. Repeat the flag for several channels. Default: all channels."
        ),
    ] = None,
    with_passphrase: WithPassphrase = False,
    as_json: AsJson = False,
) -> None:
    """Write the files of a new bot, with a test and a key, and print its public key."""
    from .project import write_project  # the rest of the package is loaded already

    try:
        passphrase = _passphrase(is_new=True) if with_passphrase else None
        public_key = write_project(folder, Community.parse(community), channel or [], passphrase)
    except (ValueError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    _print(public_key.hex, folder, as_json)


def _print(public_key: str, path: Path, as_json: bool) -> None:
    typer.echo(json.dumps({"public_key": public_key, "path": str(path)}) if as_json else public_key)


def run(
    target: Target = "bot.py",
    reload: Annotated[
        bool, typer.Option("--reload", help="Start the bot again whenever its files change.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with a table [bot], which StatusBot.configured reads."),
    ] = None,
) -> None:
    """Run the bot of a file or module, and with --reload again after each change.

    After a change with a syntax error, the error is reported, and the bot runs on unchanged.
    """
    from ..bot.membership import NotAMember
    from .reloading import CannotRun, Reloader, folder_of, load_bot

    if config is not None:
        os.environ[FILE_VARIABLE] = str(config.resolve())
    try:
        if not reload:
            load_bot(target).run()
            return
        again = [sys.executable, "-m", "reliable_channel", "bot", "run", target]
        reloader = Reloader(again, folder_of(target), lambda line: typer.echo(line, err=True))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: reloader.stop())
        status = reloader.run()
    except (CannotRun, KeyFileError, StateError, NotAMember) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1 if isinstance(error, NotAMember) else 2) from None
    raise typer.Exit(status)


def doctor(
    target: Target = "bot.py",
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with a table [bot], which StatusBot.configured reads."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print in which communities a bot is a member. Clients drop messages of others.

    The bot may run while its membership is checked. The exit status is 0 if the bot is a member of
    all communities, and 1 if not. The exit status is 3 if the node or Store does not answer, and 5
    if Store lacks a description.
    """
    from waku.errors import WakuError

    from ..bot.membership import StoredStanding
    from .reloading import CannotRun, load_bot

    if config is not None:
        os.environ[FILE_VARIABLE] = str(config.resolve())
    try:
        findings = anyio.run(load_bot(target).examine)
    except (CannotRun, KeyFileError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    except WakuError as error:
        typer.echo(f"error: the node does not answer: {error}", err=True)
        raise typer.Exit(3) from None
    for finding in findings:
        typer.echo(json.dumps(finding.to_dict()) if as_json else finding)
    places = {finding.place for finding in findings}
    if places & {StoredStanding.NOT_A_MEMBER, StoredStanding.CLOSED}:
        raise typer.Exit(1)
    raise typer.Exit(5 if StoredStanding.UNKNOWN in places else 0)


def _passphrase(*, is_new: bool) -> str:
    if text := os.environ.get(PASSPHRASE_VARIABLE):
        return text
    asked: str = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=is_new)
    return asked
