"""Place of a signature in an encoded message of any dialect. The signature is the last field, which
other peers skip, and covers all fields before it."""

from . import sds_pb2


def with_signature(data: bytes, signature: bytes) -> bytes:
    """Return an encoded message with a signature added at its end."""
    return data + _field(signature)


def signed_part(data: bytes, signature: bytes) -> bytes | None:
    """Return the part of `data` that its signature covers. Return None if the signature is not the
    last field, because it then does not cover all fields."""
    field = _field(signature)
    return data[: -len(field)] if data.endswith(field) else None


def _field(signature: bytes) -> bytes:
    # The number, and so the bytes, are the same in every dialect.
    return sds_pb2.Message(signature=signature).SerializeToString()
