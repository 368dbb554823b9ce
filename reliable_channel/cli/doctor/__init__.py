"""`reliable-channel doctor`: problems of a set-up, and how to solve them."""

from .command import register

__all__ = ["register"]
