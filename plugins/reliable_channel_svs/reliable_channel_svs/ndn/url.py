"""URL `ndn://host:port/group?…` with the forwarder and the group of a channel, and the keys."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self, cast, get_args
from urllib.parse import parse_qsl, urlsplit

from ..errors import InvalidName
from ..name import Name, text_component
from ..naming import NamingScheme
from ..signing import DigestSigner, DigestTrust, Ed25519Signer, KeyTrust, Signer, Trust
from .link import Address
from .options import NodeOptions

SCHEME: Final = "ndn"
ALLOWED: Final = (
    "ndn://host:6363/group or ndn:///group?forwarder=unix:///run/nfd/nfd.sock, with "
    "naming=svs-alo, node_prefix=/site, set_strategy=no, and key=FILE&trust=FILE"
)


@dataclass(frozen=True, slots=True)
class GroupUrl:
    forwarder: str
    """URL of the forwarder, such as `tcp://…`, `udp://…` or `unix://…`."""
    prefix: Name
    """Prefix of the group's name, before the content topic."""
    node_prefix: Name
    """Prefix of the node's name, before the sender id."""
    naming: NamingScheme
    set_strategy: bool
    key: Path | None
    """File with the name and the Ed25519 seed (hex) of the node's own key. Without a key file,
    packets are signed with DigestSha256."""
    trust: Path | None
    """File with the trusted keys, one name and public key (hex) on each line."""

    @classmethod
    def parse(cls, url: str) -> Self:
        """Return the forwarder, group and keys in a URL.

        Raises:
            ValueError: the text is no such URL.
        """
        try:
            parts = urlsplit(url)
            pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
            values = dict(pairs)
            forwarder = values.pop("forwarder", f"tcp://{parts.netloc}")
            naming = _one_of(values.pop("naming", "spec"), *get_args(NamingScheme))
            found = cls(
                forwarder,
                Name.parse(parts.path or "/"),
                Name.parse(values.pop("node_prefix", "/")),
                cast("NamingScheme", naming),
                _one_of(values.pop("set_strategy", "yes"), "yes", "no") == "yes",
                _path(values.pop("key", None)),
                _path(values.pop("trust", None)),
            )
            Address.parse(forwarder)
        except ValueError as error:
            raise ValueError(f"`node` must be {ALLOWED} (got {url!r}: {error})") from None
        if values or parts.fragment or (parts.netloc and forwarder != f"tcp://{parts.netloc}"):
            raise ValueError(f"`node` must be {ALLOWED} (got {url!r})")
        if len(pairs) != len(dict(pairs)):
            raise ValueError(f"`node` must be {ALLOWED}, each part once (got {url!r})")
        if (found.key is None) != (found.trust is None):
            raise ValueError(
                f"`node` is {url!r}; give key= and trust= together, or neither of the two"
            )
        return found

    def group(self, content_topic: str) -> Name:
        """Return the group for a content topic, whose parts follow the prefix."""
        parts = content_topic.strip("/").split("/")
        return self.prefix.append(*map(text_component, parts))

    def node(self, sender_id: str) -> Name:
        """Return the node name for a sender id."""
        return self.node_prefix.append(text_component(sender_id))

    def options(self, options: NodeOptions) -> NodeOptions:
        """Return the given options with the values from the URL."""
        return replace(options, naming=self.naming, set_strategy=self.set_strategy)

    def identity(self) -> tuple[Signer, Trust]:
        """Read the key files, and return the node's own signer and the trusted keys.

        Raises:
            ValueError: a file cannot be read, or has the wrong form.
        """
        if self.key is None or self.trust is None:
            return DigestSigner(), DigestTrust()
        own, trusted = _read_keys(self.key), _read_keys(self.trust)
        if len(own) != 1:
            raise ValueError(
                f"the key file {self.key} holds {len(own)} keys; a node signs with exactly one key"
            )
        [(name, seed)] = own.items()
        return Ed25519Signer(seed, name), KeyTrust(trusted)


def _one_of(value: str, *allowed: str) -> str:
    if value not in allowed:
        raise ValueError(f"the value must be one of {', '.join(allowed)} (got {value!r})")
    return value


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _read_keys(path: Path) -> dict[Name, bytes]:
    """Names and keys of a file: `/group/KEY/%01 <64 digits>` on each line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the keys in {path} cannot be read: {error}") from error
    keys: dict[Name, bytes] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        # The line itself is not shown: it may be a secret.
        wrong = ValueError(f"line {number} of {path}: must be a key's name and 64 hex digits")
        try:
            name, digits = line.split()
            keys[Name.parse(name)] = key = bytes.fromhex(digits)
        except (ValueError, InvalidName):
            raise wrong from None
        if len(key) != 32:
            raise wrong
    return keys
