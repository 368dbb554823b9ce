"""Codecs of the dialects. Only they know field numbers."""

from .codec import Codec, CodecError
from .nim import NimCodec
from .spec import SpecCodec

__all__ = ["Codec", "CodecError", "NimCodec", "SpecCodec"]
