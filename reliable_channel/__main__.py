"""`python -m reliable_channel` is `reliable-channel`."""

from .cli.main import run

run()
