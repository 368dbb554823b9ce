"""Invitation to a channel, a text with all that a participant needs to join.

    reliable-channel:?v=1&channel_id=ops&content_topic=…&node=http://10.0.0.7:8645&preset=auto

The parts of an invitation are arguments of a channel, by name. An invitation only chooses the
network that a program uses. No part of an invitation is evaluated or names a file.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from .._contracts.encryption import SharesKey
from ..config import flat, from_text
from ..options import ChannelOptions, PresetName
from ..transport.addresses import checked_addresses, default_content_topic

SCHEME: Final = "reliable-channel"
VERSION: Final = "1"
MAX_CHARACTERS: Final = 4_096
"""Maximum length of an invitation (characters). A longer text would not fit into a QR code."""
SHARED_OPTIONS: Final = (
    "bloom_capacity",
    "bloom_error_rate",
    "cluster_id",
    "encryption_order",
    "network",
    "num_shards",
    "pubsub_topic",
    "repair_num_response_groups",
    "segmentation",
)
"""Flat names of the options that must be equal for all participants, besides the dialect."""
PARTS: Final = (
    "v",
    "channel_id",
    "content_topic",
    "node",
    "preset",
    "wire_profile",
    "encrypted",
    "key",
)
NODE: Final = re.compile(
    r"(https?|waku\+https?|waku\+messaging(\+https)?|enrtree|udp\+multicast|memory)://|libp2p:///|/|enr:"
)
"""Pattern of node addresses that cannot name a file. Addresses with schemes of plugins might name
files."""
NETWORK: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*(?<!\.toml)")
"""Pattern of network names that are not paths of files."""
KEY: Final = re.compile(r"[a-z0-9-]+:([0-9a-f]{2})+(\.([0-9a-f]{2})*)?")
"""Pattern of an encryption with its key in hex, as `SharesKey` returns it."""


def invitation(
    channel_id: str,
    content_topic: str,
    node: str | Sequence[str] | None,
    preset: PresetName,
    options: ChannelOptions,
    encryption: object,
    *,
    with_key: bool,
) -> str:
    """Return the invitation that `join_arguments` reads.

    Credentials in node addresses are left out.

    Raises:
        ValueError: an option is an object, which no text can carry; or the key is wanted, and the
            encryption does not give it.
    """
    parts = {"v": VERSION, "channel_id": channel_id}
    if content_topic != default_content_topic(channel_id):
        parts["content_topic"] = content_topic
    if preset != "documented":
        parts["preset"] = preset
    usual = ChannelOptions.of_preset(preset)
    if options.wire_profile != usual.wire_profile:
        if not isinstance(options.wire_profile, str):
            raise ValueError(
                "`wire_profile` must be a name to be part of an invitation (got "
                f"{options.wire_profile!r})"
            )
        parts["wire_profile"] = options.wire_profile
        usual = ChannelOptions.of_preset(preset, wire_profile=options.wire_profile)
    own, others = flat(options), flat(usual)
    parts |= {name: str(own[name]) for name in SHARED_OPTIONS if own[name] != others[name]}
    if encryption is not None:
        parts["encrypted"] = "true"
    if with_key:
        if not isinstance(encryption, SharesKey):
            raise ValueError(
                "`key` needs an encryption that can return its key, such as SymmetricEncryption "
                f"(got {type(encryption).__name__})"
            )
        parts["key"] = encryption.key_text()
    nodes = [("node", _without_credentials(one)) for one in checked_addresses(node)]
    query = urlencode([*parts.items(), *nodes], safe=":/,", quote_via=quote)
    return f"{SCHEME}:?{query}"


def joined(text: str, sender_id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the channel arguments of an invitation, completed with the reader's own arguments.

    Raises:
        ValueError: as `join_arguments`, or the channel is encrypted and there is no key.
    """
    found = join_arguments(text)
    if found.pop("encrypted", False) and "encryption" not in arguments:
        raise ValueError(
            "`encryption` is missing: the channel is encrypted, and the invitation has no key"
        )
    return {**found, "sender_id": sender_id, **arguments}


def join_arguments(text: str) -> dict[str, Any]:
    """Return the channel arguments of an invitation. The value `encrypted` means that the channel
    needs a key.

    Raises:
        ValueError: the text is not an invitation, or has a part that is unknown, twice there or
            refused. The error names the part.
    """
    text = "".join(text.split())  # a terminal or a mail may have wrapped it
    scheme, _, query = text.partition(":?")
    if scheme != SCHEME or len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"`invitation` must begin with '{SCHEME}:?' and have at most {MAX_CHARACTERS:,} "
            "characters; copy it whole"
        )
    parts: dict[str, str] = {}
    nodes: list[str] = []
    for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=100):
        if name not in (*PARTS, *SHARED_OPTIONS):
            raise ValueError(
                f"the invitation has an unknown part `{name}`; a newer version of this package "
                "may read the invitation"
            )
        if name == "node":
            nodes.append(_checked("node", value, NODE))
        elif name in parts:
            raise ValueError(f"the invitation has the part `{name}` twice")
        else:
            parts[name] = value
    if parts.pop("v", None) != VERSION:
        raise ValueError(
            f"`v` of the invitation must be {VERSION}: another version of this package made the "
            "invitation"
        )
    if not parts.get("channel_id"):
        raise ValueError("the invitation has no part `channel_id`")
    if "network" in parts:
        _checked("network", parts["network"], NETWORK)
    return _arguments(parts, nodes)


def _arguments(parts: Mapping[str, str], nodes: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: from_text(name, value, name)
        for name, value in parts.items()
        if name not in ("encrypted", "key")
    }
    if nodes:
        found["node"] = list(nodes)
    if "key" in parts:
        found["encryption"] = _checked("key", parts["key"], KEY)
    elif "encrypted" in parts:
        found["encrypted"] = True  # any value, otherwise a changed one joins without encryption
    return found


def _checked(name: str, value: str, form: re.Pattern[str]) -> str:
    found = form.match(value) if name == "node" else form.fullmatch(value)
    if found is None:
        shown = "a text that is not shown" if name == "key" else repr(value)
        raise ValueError(
            f"the channel refuses `{name}` of the invitation (got {shown}); give the value as an "
            "argument if you trust it"
        )
    return value


def _without_credentials(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
