"""The command line's entry point."""

import sys

import typer

from . import chat, demo, listen, node, peer, send
from .console import errors

app = typer.Typer(
    name="reliable-channel",
    help="Reliable channels over the Waku network.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (demo, node, chat, send, listen, peer):
    module.register(app)


def run() -> None:
    """Run the command line; a person sees one line for an error, not a traceback."""
    with errors():
        app()
    sys.exit(0)
