"""X3DH bundles and their shared secrets (53/WAKU2-X3DH) on secp256k1, without one-time keys.

A bundle has a signed pre-key for each device of its owner, and the owner's signature.
"""

from dataclasses import dataclass, field
from typing import Final

from .. import status_pb2
from ..keys import COMPRESSED_BYTES, PrivateKey, PublicKey, keccak256, recover

MAX_DEVICES: Final = 16
"""Maximum number of devices that are read from a bundle. status-go keeps at most three devices of a
user."""
MAX_ID_LENGTH: Final = 128
OWN_VERSION: Final = 0
"""Field `protocol_version` of the bot's own pre-keys. With devices of version 1, clients agree on a
further, "negotiated" topic. To devices of version 0, clients write on the partitioned topic, on
which bots listen."""


@dataclass(frozen=True, slots=True)
class SignedPreKey:
    """Signed pre-key of a user's device."""

    public_key: PublicKey
    version: int = 0
    protocol_version: int = OWN_VERSION


@dataclass(frozen=True, slots=True)
class Bundle:
    """Bundle with the pre-keys of a user's devices."""

    identity: PublicKey
    devices: dict[str, SignedPreKey]
    timestamp_ns: int
    signature: bytes = field(default=b"", repr=False)

    @property
    def signed_bytes(self) -> bytes:
        """Bytes that the owner signs, which are the devices in order of their ids and the time."""
        parts = [
            device.encode() + key.public_key.compressed + str(key.version).encode()
            for device, key in sorted(self.devices.items(), key=lambda item: item[0].encode())
        ]
        if self.timestamp_ns:
            parts.append(str(self.timestamp_ns).encode())
        return b"".join(parts)

    def encode(self) -> status_pb2.Bundle:
        raw = status_pb2.Bundle(
            identity=self.identity.compressed,
            signature=self.signature,
            timestamp=self.timestamp_ns,
        )
        for device, key in self.devices.items():
            written = raw.signed_pre_keys[device]
            written.signed_pre_key = key.public_key.compressed
            written.version = key.version
            written.protocol_version = key.protocol_version
        return raw


def sign_bundle(key: PrivateKey, devices: dict[str, SignedPreKey], timestamp_ns: int) -> Bundle:
    """Return a new bundle, signed with the owner's key."""
    unsigned = Bundle(key.public_key, devices, timestamp_ns)
    return Bundle(key.public_key, devices, timestamp_ns, key.sign(unsigned.signed_bytes))


def read_bundle(raw: status_pb2.Bundle) -> Bundle:
    """Return a bundle whose signature is valid.

    Raises:
        ValueError: it is not a bundle, or its identity did not sign it.
    """
    if not 0 < len(raw.signed_pre_keys) <= MAX_DEVICES:
        raise ValueError(
            f"the bundle has {len(raw.signed_pre_keys)} devices; 1 to {MAX_DEVICES} are allowed"
        )
    if max(map(len, raw.signed_pre_keys)) > MAX_ID_LENGTH:
        raise ValueError(f"the id of a device has more than {MAX_ID_LENGTH} characters")
    devices = {
        device: SignedPreKey(_compressed(key.signed_pre_key), key.version, key.protocol_version)
        for device, key in raw.signed_pre_keys.items()
    }
    bundle = Bundle(_compressed(raw.identity), devices, raw.timestamp, raw.signature)
    if recover(bundle.signed_bytes, bundle.signature) != bundle.identity:
        raise ValueError(f"the bundle has no valid signature by its identity {bundle.identity!r}")
    return bundle


def _compressed(data: bytes) -> PublicKey:
    if len(data) != COMPRESSED_BYTES:
        raise ValueError(
            f"a compressed public key has {len(data)} bytes instead of {COMPRESSED_BYTES}"
        )
    return PublicKey(data)


def secret_of_initiator(
    identity: PrivateKey, ephemeral: PrivateKey, peer: PublicKey, pre_key: PublicKey
) -> bytes:
    """Return the secret (32 bytes) of a session that begins with a message to a bundle."""
    return keccak256(
        identity.shared_secret(pre_key)
        + ephemeral.shared_secret(peer)
        + ephemeral.shared_secret(pre_key)
    )


def secret_of_responder(
    identity: PrivateKey, pre_key: PrivateKey, peer: PublicKey, ephemeral: PublicKey
) -> bytes:
    """Return the secret (32 bytes) of a session for the owner of the bundle, equal to the
    initiator's."""
    return keccak256(
        pre_key.shared_secret(peer)
        + identity.shared_secret(ephemeral)
        + pre_key.shared_secret(ephemeral)
    )
