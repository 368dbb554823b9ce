"""Where a signature stands in an encoded message of any dialect: last, as a field that peers that
do not know its number skip. So what it covers is simply all that stands before it."""

from . import sds_pb2


def with_signature(data: bytes, signature: bytes) -> bytes:
    """An encoded message without a signature, with one behind it."""
    return data + _field(signature)


def signed_part(data: bytes, signature: bytes) -> bytes | None:
    """What stands before the signature that was decoded from `data`; None where it is not the last
    field, and so does not cover all."""
    field = _field(signature)
    return data[: -len(field)] if data.endswith(field) else None


def _field(signature: bytes) -> bytes:
    # The number, and so the bytes, are the same in every dialect.
    return sds_pb2.Message(signature=signature).SerializeToString()
