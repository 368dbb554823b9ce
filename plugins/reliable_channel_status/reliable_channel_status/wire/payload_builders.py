"""Payloads of messages that a bot sends. The clock and the time of a payload are added when it is
sent."""

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Final, TypeAlias

from .enums import SIX_EMOJI, ContentType, ImageFormat, Reaction
from .payloads import (
    BridgeMessage,
    ChatMessage,
    ChatPayload,
    ContactRequestPropagatedState,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    ImageMessage,
    PinMessage,
)
from .rooms import Room

Make: TypeAlias = Callable[[int, int], ChatPayload]
"""Function from the clock and the time (both ms) to a payload."""

_CONTACT_SENT: Final = 2
"""`ContactRequestStateSent` of status-go."""


def image_of(data: bytes) -> ImageMessage:
    """Return the payload of an image, which is a PNG, JPEG, GIF or WebP file.

    Raises:
        ValueError: something else.
    """
    return ImageMessage(payload=data, format=image_format(data))


def message(
    room: Room,
    text: str,
    image: bytes | None = None,
    bridged: BridgeMessage | None = None,
    response_to: str = "",
) -> Make:
    """Return a chat message with text, image or bridged content.

    Raises:
        ValueError: an image of an unknown kind, or image and bridged message together.
    """
    content = ContentType.TEXT_PLAIN
    if image is not None:
        content = ContentType.IMAGE
    if bridged is not None:
        content = ContentType.BRIDGE_MESSAGE
    template = ChatMessage(
        clock=0,
        timestamp=0,
        text=text,
        chat_id=room.chat_id,
        message_type=room.message_type,
        content_type=content,
        response_to=response_to,
        image=None if image is None else image_of(image),
        bridge_message=bridged,
    )
    return lambda clock, now_ms: replace(template, clock=clock, timestamp=now_ms)


def contact_request(room: Room, text: str) -> Make:
    """Return a contact request with a text."""
    ask = message(room, text)

    def make(clock: int, now_ms: int) -> ChatPayload:
        payload = ask(clock, now_ms)
        assert isinstance(payload, ChatMessage)
        state = ContactRequestPropagatedState(local_clock=clock, local_state=_CONTACT_SENT)
        return replace(
            payload,
            content_type=ContentType.CONTACT_REQUEST,
            contact_request_propagated_state=state,
        )

    return make


def edit(room: Room, message_id: str, text: str) -> Make:
    """Return the payload of an edit, with a new text for an own message."""
    return lambda clock, _: EditMessage(
        clock=clock,
        text=text,
        chat_id=room.chat_id,
        message_id=message_id,
        message_type=room.message_type,
    )


def deletion(room: Room, message_id: str) -> Make:
    return lambda clock, _: DeleteMessage(
        clock=clock, chat_id=room.chat_id, message_id=message_id, message_type=room.message_type
    )


def pin(room: Room, message_id: str, pinned: bool) -> Make:
    """Return the payload of a pin, or of the removal of a pin."""
    return lambda clock, _: PinMessage(
        clock=clock,
        chat_id=room.chat_id,
        message_id=message_id,
        pinned=pinned,
        message_type=room.message_type,
    )


def reaction(room: Room, message_id: str, kind: Reaction | str, retracted: bool) -> Make:
    """Return the payload of a reaction to a message, or of its retraction. The six standard
    reactions are sent by number, because older clients read only numbers."""
    of_six = {emoji: number for number, emoji in SIX_EMOJI.items()}
    number = kind if isinstance(kind, Reaction) else of_six.get(kind)
    return lambda clock, _: EmojiReaction(
        clock=clock,
        chat_id=room.chat_id,
        message_id=message_id,
        type=number or Reaction.UNKNOWN_EMOJI_REACTION_TYPE,
        emoji="" if number else str(kind),
        retracted=retracted,
        message_type=room.message_type,
    )


MAX_IMAGE_BYTES: Final = 1_000_000
"""Maximum size of an image in a message. Clients send images of less than 400 kB. A larger image
slows the apps of its readers."""
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", ImageFormat.PNG),
    (b"\xff\xd8\xff", ImageFormat.JPEG),
    (b"GIF8", ImageFormat.GIF),
)


def image_format(data: bytes) -> ImageFormat:
    """Return the format of an image, which is PNG, JPEG, GIF or WebP, from its first bytes.

    Raises:
        ValueError: something else.
    """
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImageFormat.WEBP
    raise ValueError(f"{data[:8]!r}… is no PNG, JPEG, GIF or WebP")


def fitting(image: bytes, most: int = MAX_IMAGE_BYTES) -> bytes:
    """Return an image of at most the given size, which Pillow converts to a smaller JPEG if needed.

    Raises:
        ValueError: it is larger, and Pillow is missing or cannot read it.
    """
    if len(image) <= most:
        return image
    found = f"`image` must have at most {most} bytes (got {len(image)})"
    try:
        from PIL import Image
    except ModuleNotFoundError:
        hint = "make it smaller, or pip install 'reliable-channel-status[images]'"
        raise ValueError(f"{found}; {hint}") from None
    try:
        with Image.open(BytesIO(image)) as opened:
            picture = opened.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"{found}; Pillow cannot read it: {error}") from error
    for side in (2000, 1000, 500, 240, 80):
        picture.thumbnail((side, side))
        smaller = BytesIO()
        picture.save(smaller, "JPEG", quality=80)
        if smaller.tell() <= most:
            break
    return smaller.getvalue()
