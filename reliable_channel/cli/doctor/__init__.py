"""`reliable-channel doctor`: what is wrong with a set-up, and what to do."""

from .command import register

__all__ = ["register"]
