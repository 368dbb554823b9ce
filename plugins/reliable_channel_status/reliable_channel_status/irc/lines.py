"""Lines of IRC (RFC 1459, RFC 2812, tags of IRCv3): parsing and writing. Pure, no I/O."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_LINE_BYTES: Final = 512
"""Of a line that is sent, with its end (RFC 2812, section 2.3)."""
MAX_RECEIVED_BYTES: Final = 8191 + MAX_LINE_BYTES
"""Of a line that is received, with tags (IRCv3 message tags); a longer one is dropped."""
_FORMAT: Final = re.compile(
    "\x03(?:[0-9]{1,2}(?:,[0-9]{1,2})?)?|\x04(?:[0-9a-fA-F]{6})?|[\x00-\x1f\x7f]"
)
_ESCAPES: Final = {":": ";", "s": " ", "\\": "\\", "r": "\r", "n": "\n"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line: `:source COMMAND params :last`."""

    command: str
    """In capital letters; three digits for a reply of the server."""
    params: tuple[str, ...] = ()
    source: str = ""
    """`nick!user@host`, or the name of a server."""
    message_id: str = ""
    """The tag `msgid`."""

    @property
    def nick(self) -> str:
        """The nickname of the source."""
        return self.source.partition("!")[0]

    def encode(self) -> bytes:
        """The line as it is sent.

        Raises:
            ValueError: it is too long, or a parameter cannot stand there.
        """
        *first, last = self.params or ("",)
        if any(not one or " " in one or one.startswith(":") for one in first):
            raise ValueError(f"only the last parameter of {self.command} can have spaces")
        words = [self.command, *first, *([f":{last}"] if self.params else [])]
        text = " ".join(words)
        if re.search("[\r\n\x00]", text):
            raise ValueError(f"a line of {self.command} cannot have an end inside")
        data = text.encode("utf-8", "replace") + b"\r\n"
        if len(data) > MAX_LINE_BYTES:
            raise ValueError(f"a line must be at most {MAX_LINE_BYTES} bytes (got {len(data)})")
        return data


def parse(data: bytes) -> Line | None:
    """The line of some bytes without their end; None if it is empty or not a line."""
    text = data.decode("utf-8", "replace").strip("\r\n")
    tags = source = ""
    if text.startswith("@"):
        tags, _, text = text[1:].partition(" ")
    text = text.lstrip(" ")
    if text.startswith(":"):
        source, _, text = text[1:].partition(" ")
    text, colon, last = f" {text}".partition(" :")
    words = text.split()
    if not words or not re.fullmatch("[A-Za-z]+|[0-9]{3}", words[0]):
        return None
    params = (*words[1:], *([last] if colon else []))
    return Line(words[0].upper(), params, source, _tag(tags, "msgid"))


class LineBuffer:
    """Cuts what arrives into lines; its memory is bounded."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_too_long = False
        self.dropped = 0
        """Lines that were too long, or not lines."""

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that some bytes complete."""
        *ended, self._rest = (self._rest + data).split(b"\n")
        for one in ended:
            line = None if self._is_too_long or len(one) > MAX_RECEIVED_BYTES else parse(one)
            self.dropped += line is None and bool(self._is_too_long or one.strip())
            self._is_too_long = False
            if line is not None:
                yield line
        if len(self._rest) > MAX_RECEIVED_BYTES:
            self._rest, self._is_too_long = b"", True


def without_format(text: str) -> str:
    """A text without the codes for colors and weights, and without control characters."""
    return _FORMAT.sub("", text)


def pieces(text: str, max_bytes: int, max_pieces: int) -> list[str]:
    """A text in lines of limited bytes, cut between characters, best between words.

    What is beyond the last line is cut off, which the line shows by `…`.
    """
    found: list[str] = []
    for line in filter(None, (without_format(one).strip() for one in text.splitlines())):
        while line:
            cut = _cut(line, max_bytes)
            if len(found) == max_pieces - 1 and (cut < len(line)):
                found.append(line[: _cut(line, max_bytes - 3)].rstrip() + "…")
                return found
            found.append(line[:cut].rstrip())
            line = line[cut:].lstrip()
            if len(found) == max_pieces:
                break
        if len(found) == max_pieces:
            break
    return found


def _cut(line: str, max_bytes: int) -> int:
    """After how many characters to cut, at least one."""
    if len(line.encode("utf-8", "replace")) <= max_bytes:
        return len(line)
    fits = len(line.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore"))
    space = line.rfind(" ", 0, fits + 1)
    return max(1, space if space > fits // 2 else fits)


def _tag(tags: str, name: str) -> str:
    for one in tags.split(";"):
        key, _, value = one.partition("=")
        if key == name:
            return re.sub(r"\\(.?)", lambda found: _ESCAPES.get(found[1], found[1]), value)
    return ""
