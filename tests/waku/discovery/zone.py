"""Records and trees signed with keys of the tests' own, and a resolver that serves them."""

import base64
from collections.abc import Mapping, Sequence

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from waku.discovery import LookupFailed
from waku.discovery.identity import keccak_256
from waku.libp2p import Multiaddr


class Key:
    """A secp256k1 key that signs as EIP-778 wants."""

    def __init__(self, number: int) -> None:
        self._key = ec.derive_private_key(number, ec.SECP256K1())
        self.public = self._key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
        )

    def sign(self, content: bytes) -> bytes:
        algorithm = ec.ECDSA(utils.Prehashed(hashes.SHA256()), deterministic_signing=True)
        r, s = utils.decode_dss_signature(self._key.sign(keccak_256(content), algorithm))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def record(key: Key, pairs: Mapping[bytes, bytes], *, sequence: int = 1) -> str:
    """An ENR with these pairs beside `id` and `secp256k1`."""
    every = {b"id": b"v4", b"secp256k1": key.public, **pairs}
    items = [_string(sequence.to_bytes(4, "big").lstrip(b"\0"))]
    items += [_string(part) for name in sorted(every) for part in (name, every[name])]
    content = b"".join(items)
    return text_of(_string(key.sign(_list(content))) + content)


def text_of(content: bytes) -> str:
    """The list of this content as a record's text."""
    return "enr:" + base64.urlsafe_b64encode(_list(content)).rstrip(b"=").decode()


def waku_record(
    number: int, address: str, *, waku2: int = 15, cluster_id: int = 1, shards: Sequence[int] = (0,)
) -> str:
    """The ENR of a Waku node; an address of a node without its peer id."""
    encoded = Multiaddr.parse(address).encode()
    listed = b"".join(shard.to_bytes(2, "big") for shard in shards)
    return record(
        Key(number),
        {
            b"multiaddrs": len(encoded).to_bytes(2, "big") + encoded,
            b"waku2": bytes([waku2]),
            b"rs": cluster_id.to_bytes(2, "big") + bytes([len(shards)]) + listed,
        },
    )


class Zone:
    """Trees in a DNS of the tests' own; every lookup is noted."""

    def __init__(self) -> None:
        self.texts_by_name: dict[str, list[str]] = {}
        self.asked: list[str] = []

    def plant(
        self,
        domain: str,
        records: Sequence[str],
        *,
        links: Sequence[str] = (),
        key: Key | None = None,
        signer: Key | None = None,
        width: int = 3,
    ) -> str:
        """Write a tree and return its URL; `signer` forges the root."""
        key = key or Key(4_242)
        nodes, others = (self._branch(domain, part, width) for part in (records, links))
        root = f"enrtree-root:v1 e={nodes} l={others} seq=3"
        signature = (signer or key).sign(root.encode()) + b"\0"
        sig = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
        self.texts_by_name[domain] = ["v=spf1 -all", f"{root} sig={sig}"]
        return f"enrtree://{_base32(key.public)}@{domain}"

    def put(self, domain: str, text: str) -> str:
        """Write a text under its hash, and return that."""
        name = _base32(keccak_256(text.encode())[:16])
        self.texts_by_name[f"{name}.{domain}"] = [text]
        return name

    async def texts(self, name: str) -> list[str]:
        self.asked.append(name)
        if name not in self.texts_by_name:
            raise LookupFailed(f"{name} does not exist")
        return self.texts_by_name[name]

    def _branch(self, domain: str, texts: Sequence[str], width: int) -> str:
        names = [self.put(domain, text) for text in texts]
        while len(names) > width:
            names = [
                self.put(domain, "enrtree-branch:" + ",".join(names[at : at + width]))
                for at in range(0, len(names), width)
            ]
        return self.put(domain, "enrtree-branch:" + ",".join(names))


def _string(data: bytes) -> bytes:
    if len(data) == 1 and data[0] < 0x80:
        return data
    if len(data) <= 55:
        return bytes([0x80 + len(data)]) + data
    size = len(data).to_bytes((len(data).bit_length() + 7) // 8, "big")
    return bytes([0xB7 + len(size)]) + size + data


def _list(content: bytes) -> bytes:
    if len(content) <= 55:
        return bytes([0xC0 + len(content)]) + content
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([0xF7 + len(size)]) + size + content


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=")
