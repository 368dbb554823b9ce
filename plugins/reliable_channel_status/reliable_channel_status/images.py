"""Which kind of image some bytes are."""

from typing import Final

from .enums import ImageFormat

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", ImageFormat.PNG),
    (b"\xff\xd8\xff", ImageFormat.JPEG),
    (b"GIF8", ImageFormat.GIF),
)


def image_format(data: bytes) -> ImageFormat:
    """PNG, JPEG, GIF or WebP, by the first bytes.

    Raises:
        ValueError: something else.
    """
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImageFormat.WEBP
    raise ValueError(f"{data[:8]!r}… is no PNG, JPEG, GIF or WebP")
