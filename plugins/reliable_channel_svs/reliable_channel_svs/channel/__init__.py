"""`sync="svs"`: a channel over any transport with state vectors as the digest."""

from .core import SvsCore

__all__ = ["SvsCore"]
