"""Codecs, one a dialect: the only place that knows field numbers."""

from .spec import CodecError, SpecCodec

__all__ = ["CodecError", "SpecCodec"]
