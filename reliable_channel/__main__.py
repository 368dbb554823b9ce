"""`python -m reliable_channel` is `reliable-channel`."""

from .cli import run

run()
