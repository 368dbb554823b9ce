"""Lists of nodes in the DNS (EIP-1459), read without I/O. The caller queries the DNS for names and
passes the texts to this module.

    walk = TreeWalk("enrtree://AIRVQ5DD…@boot.example")
    while (name := walk.next_name()) is not None:
        walk.receive(name, texts_of(name))
    walk.records

The owner of the key in the URL signs the root of a tree. Every other text is stored under its own
hash, so a resolver cannot change a text.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from waku.libp2p import InvalidInput

from .enr import PREFIX as RECORD
from .enr import NodeRecord
from .identity import SIGNATURE_BYTES, is_signed, keccak_256, public_key

__all__ = ["TreeUrl", "TreeWalk"]

SCHEME: Final = "enrtree://"
ROOT: Final = "enrtree-root:v1 "
BRANCH: Final = "enrtree-branch:"
HASH_BYTES: Final = 16
"""Length of a text's name (bytes), which is the start of the text's hash."""
MAX_NAME: Final = 253
MAX_TEXT: Final = 2_048
"""Maximum length of a text (characters). go-ethereum writes texts of at most 370 characters."""
MAX_LOOKUPS: Final = 500
"""Maximum number of names that are looked up in one walk. Waku's fleets have about twenty nodes,
and a tree has 13 branches in each text."""
MAX_TREES: Final = 8
"""Maximum number of trees in one walk, linked trees included."""
MAX_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True)
class TreeUrl:
    """URL of a tree, with its root and the key that signs the root."""

    key: bytes
    """Public key (33 bytes), a compressed secp256k1 point."""
    domain: str

    @classmethod
    def parse(cls, text: str) -> TreeUrl:
        """Parse a URL of the form `enrtree://<key>@<domain>`.

        Raises:
            InvalidInput: it has another form, or the key is invalid.
        """
        if not text.lower().startswith(SCHEME):
            raise InvalidInput(f"{text[:100]!r} does not begin with {SCHEME!r}")
        name, at, domain = text[len(SCHEME) :].partition("@")
        if not at or not _is_domain(domain):
            raise InvalidInput(f"{text[:100]!r} is not of the form enrtree://<key>@<domain>")
        key = _from_base32(name)
        public_key(key)
        return cls(key, domain.lower().rstrip("."))

    def __str__(self) -> str:
        return f"{SCHEME}{_to_base32(self.key)}@{self.domain}"


@dataclass(frozen=True, slots=True)
class _Wanted:
    tree: TreeUrl
    hash: str | None
    """None for a root."""
    of_links: bool = False
    """True if it stands among the links to other trees, and not among the nodes."""


class TreeWalk:
    """Walk through a tree of node records, and through the trees that it links to."""

    def __init__(self, url: str) -> None:
        """Raises:
        InvalidInput: the URL is not a tree's.
        """
        self.records: list[NodeRecord] = []
        """Nodes found so far, each once."""
        self.problems: list[str] = []
        """What could not be read, at most 20 texts; the rest is good all the same."""
        self.sequence: int | None = None
        """Of the first tree; None until its root is read, and if its signature is wrong."""
        self._first = TreeUrl.parse(url)
        self._trees = {self._first}
        self._lookups = 0
        self._seen: set[str] = set()
        self._queue: deque[str] = deque()
        self._wanted: dict[str, _Wanted] = {}
        self._ask(_Wanted(self._first, None))

    def next_name(self) -> str | None:
        """Return a name whose texts are needed, or None if no name is needed now.

        Call `receive` or `fail` for every name that this method has returned.
        """
        return self._queue.popleft() if self._queue else None

    def receive(self, name: str, texts: Sequence[str]) -> None:
        """Accept the texts (TXT records) of a name."""
        wanted = self._wanted.pop(name)
        try:
            if wanted.hash is None:
                self._take_root(wanted.tree, texts)
            else:
                self._take_entry(wanted, wanted.hash, texts)
        except InvalidInput as error:
            self._note(f"{name}: {error}")

    def fail(self, name: str, reason: str) -> None:
        """Note that the texts of a name are not available."""
        del self._wanted[name]
        self._note(f"{name}: {reason}")

    def _ask(self, wanted: _Wanted) -> None:
        domain = wanted.tree.domain
        name = domain if wanted.hash is None else f"{wanted.hash}.{domain}"
        if name in self._seen:
            return
        if self._lookups == MAX_LOOKUPS:
            self._note(f"more than {MAX_LOOKUPS} names; the rest of the tree is left out")
            return
        self._lookups += 1
        self._seen.add(name)
        self._wanted[name] = wanted
        self._queue.append(name)

    def _take_root(self, tree: TreeUrl, texts: Sequence[str]) -> None:
        # Other texts may stand at a domain, too: SPF, proofs of ownership.
        roots = [text for text in texts if text.startswith(ROOT)]
        if not roots:
            raise InvalidInput("the domain has no root of an ENR tree")
        content, _, signature = roots[0][:MAX_TEXT].rpartition(" sig=")
        # T14: 65 bytes, the last of which would give the key.
        if not is_signed(tree.key, content.encode(), _from_base64(signature)[:SIGNATURE_BYTES]):
            raise InvalidInput("the root of the ENR tree has a wrong signature")
        parts = [part.partition("=") for part in content[len(ROOT) :].split(" ")]
        fields = {name: value for name, _, value in parts}
        if tree == self._first:
            self.sequence = _number(fields.get("seq", ""))
        for name, of_links in (("e", False), ("l", True)):
            self._ask(_Wanted(tree, _hash(fields.get(name, "")), of_links))

    def _take_entry(self, wanted: _Wanted, hash: str, texts: Sequence[str]) -> None:
        text = next((text for text in texts if _to_base32(_digest(text)) == hash), None)
        if text is None:
            raise InvalidInput(
                "the answer of the DNS has no text whose hash equals the requested name"
            )
        if len(text) > MAX_TEXT:
            raise InvalidInput(
                f"an entry of the ENR tree has {len(text)} characters; at most {MAX_TEXT} are "
                "allowed"
            )
        if text.startswith(BRANCH):
            for child in filter(None, text[len(BRANCH) :].split(",")):
                self._ask(_Wanted(wanted.tree, _hash(child), wanted.of_links))
        elif wanted.of_links and text.startswith(SCHEME):
            self._follow(TreeUrl.parse(text))
        elif not wanted.of_links and text.startswith(RECORD):
            record = NodeRecord.parse(text)
            if record not in self.records:
                self.records.append(record)
        else:
            raise InvalidInput(
                f"{text[:40]!r} is neither a branch nor an allowed entry of the ENR tree"
            )

    def _follow(self, tree: TreeUrl) -> None:
        if tree in self._trees:
            return
        if len(self._trees) == MAX_TREES:
            raise InvalidInput(
                f"a link leads to another ENR tree, but at most {MAX_TREES} trees are read"
            )
        self._trees.add(tree)
        self._ask(_Wanted(tree, None))

    def _note(self, problem: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)


def _digest(text: str) -> bytes:
    return keccak_256(text.encode())[:HASH_BYTES]


def _hash(text: str) -> str:
    """A hash as a name has it, which it is asked under."""
    if len(_from_base32(text)) != HASH_BYTES:
        raise InvalidInput(f"{text[:40]!r} is not a hash of {HASH_BYTES} bytes")
    return text.upper()


def _is_domain(text: str) -> bool:
    return 0 < len(text) <= MAX_NAME - 27 and all(
        0 < len(label) < 64
        and label.isascii()
        and label.replace("-", "").replace("_", "").isalnum()
        for label in text.rstrip(".").split(".")
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise InvalidInput(f"{text[:40]!r} is not a sequence number")
    return int(text)


def _to_base32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=")


def _from_base32(text: str) -> bytes:
    try:
        return base64.b32decode(text.upper() + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        raise InvalidInput(f"{text[:60]!r} is not base32") from None


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"{text[:40]!r} is not base64") from None
