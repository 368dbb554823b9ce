"""The ratchet sessions of one device with the devices of others (54/WAKU2-X3DH-SESSIONS).

A session belongs to a device of a peer and to the bundle that it began with. What changes is put
into a store before `encrypt` and `decrypt` return; the caller makes the store durable before a
message goes out. No I/O, no clock: the caller gives the time.
"""

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from .. import status_pb2
from ..keys import PrivateKey, PublicKey
from ..outcomes import MessageKeyId, RefusalReason, Refused
from .bundles import (
    MAX_ID_LENGTH,
    Bundle,
    SignedPreKey,
    read_bundle,
    secret_of_initiator,
    secret_of_responder,
    sign_bundle,
)
from .ratchet import (
    KeyUsed,
    Ratchet,
    RatchetError,
    RatchetHeader,
    RatchetState,
    TooManySkipped,
)
from .session_store import SessionStore

MAX_INSTALLATIONS: Final = 3
"""Devices of a user that are written to, those seen last (status-go)."""
MAX_SESSIONS: Final = 20_000
"""Sessions that are kept; then the oldest goes."""
MAX_PER_DEVICE: Final = 4
"""Sessions with one device: one for each bundle that either side began with."""
MAX_BUNDLES: Final = 20_000
"""Pre-keys of others' devices that are kept."""
MAX_RETIRED: Final = 16
"""Replaced beginnings of a session that are known, so that a replay does not bring them back."""
MAX_PRE_KEYS: Final = 64
"""Own pre-keys that are kept, for messages that come late."""
PRE_KEY_MS: Final = 24 * 3600 * 1000
"""After which a new pre-key is published (`BundleRefreshInterval`)."""


@dataclass(slots=True)
class _Session:
    bundle_id: bytes
    ratchet: Ratchet
    ephemeral: bytes
    """Of the side that began."""
    is_confirmed: bool
    """Whether the other is known to have it; until then each message has what begins it."""
    used: int
    """Grows with each message that is received: the highest is written on."""
    is_broken: bool = False
    retired: list[bytes] = field(default_factory=list)
    last_ms: int = 0
    """Time of the latest message that was read: what is older and does not open was here before."""

    def encode(self) -> bytes:
        state = self.ratchet.state
        document = {
            "bundle_id": self.bundle_id.hex(),
            "ephemeral": self.ephemeral.hex(),
            "is_confirmed": self.is_confirmed,
            "used": self.used,
            "is_broken": self.is_broken,
            "last_ms": self.last_ms,
            "retired": [one.hex() for one in self.retired],
            "root": state.root.hex(),
            "own": state.own.reveal().hex(),
            "peer": None if state.peer is None else state.peer.compressed.hex(),
            "sending": state.sending.hex(),
            "receiving": state.receiving.hex(),
            "counts": [state.sent, state.received, state.previous],
        }
        return json.dumps(document).encode()


class Sessions:
    """The sessions of one device.

    Args:
        key: of the device's owner.
        installation_id: names the device; not empty.
        store: what is kept.
        new_key: gives ratchet keys, ephemeral keys and pre-keys.
    """

    def __init__(
        self,
        key: PrivateKey,
        installation_id: str,
        store: SessionStore,
        *,
        new_key: Callable[[], PrivateKey] = PrivateKey.generate,
    ) -> None:
        self._key = key
        self.installation_id: Final = installation_id
        self._store = store
        self._new_key = new_key
        self._raw: OrderedDict[str, bytes] = OrderedDict(store.rows("direct_sessions"))
        self._live: dict[str, _Session] = {}
        self._of_device: dict[str, list[str]] = {}
        for session_id in self._raw:
            self._of_device.setdefault(_device_of(session_id), []).append(session_id)
        self._keys: dict[str, OrderedDict[tuple[bytes, int], bytes]] = {}
        for name, value in store.rows("direct_message_keys"):
            session_id, key_hex, n = name.rsplit(" ", 2)
            keys = self._keys.setdefault(session_id, OrderedDict())
            keys[bytes.fromhex(key_hex), int(n)] = value
        self._bundles: OrderedDict[str, Any] = OrderedDict(
            (name, json.loads(value)) for name, value in store.rows("direct_bundles")
        )
        self._pre_keys: list[tuple[int, PrivateKey]] = sorted(
            (
                (int(name.split()[0]), PrivateKey(value))
                for name, value in store.rows("direct_pre_keys")
            ),
            key=lambda one: one[0],
        )
        self._lost: dict[PublicKey, None] = {}

    # -- bundles ----------------------------------------------------------------------------------

    def bundle(self, now_ms: int) -> Bundle:
        """The own bundle, to go with each direct message; with a new pre-key once a day."""
        if not self._pre_keys or now_ms - self._pre_keys[-1][0] >= PRE_KEY_MS:
            pre_key = self._new_key()
            self._pre_keys.append((now_ms, pre_key))
            self._store.put("direct_pre_keys", f"{now_ms}", pre_key.reveal())
            while len(self._pre_keys) > MAX_PRE_KEYS:
                made_ms, _ = self._pre_keys.pop(0)
                self._store.delete("direct_pre_keys", f"{made_ms}")
        device = SignedPreKey(self._pre_keys[-1][1].public_key)
        return sign_bundle(self._key, {self.installation_id: device}, now_ms * 1_000_000)

    def learn(self, raw: status_pb2.Bundle, sender: PublicKey) -> Refused | None:
        """Keep a sender's bundle, unless a later one is here; others' bundles are ignored."""
        try:
            bundle = read_bundle(raw)
        except ValueError as error:
            return Refused(RefusalReason.BAD_BUNDLE, str(error)[:150], sender)
        if bundle.identity != sender or sender == self._key.public_key:
            return None
        name = sender.compressed.hex()
        known = self._bundles.get(name, {})
        if known and max(one[1] for one in known.values()) >= bundle.timestamp_ns:
            return None
        for device, pre_key in bundle.devices.items():
            known[device] = [pre_key.public_key.compressed.hex(), bundle.timestamp_ns]
        latest = sorted(known.items(), key=lambda item: -item[1][1])[: 2 * MAX_INSTALLATIONS]
        self._bundles[name] = dict(latest)
        self._store.put("direct_bundles", name, json.dumps(dict(latest)).encode())
        if len(self._bundles) > MAX_BUNDLES:
            self._store.delete("direct_bundles", self._bundles.popitem(last=False)[0])
        return None

    # -- messages ---------------------------------------------------------------------------------

    def encrypt(self, plain: bytes, peer: PublicKey) -> dict[str, bytes]:
        """A message for each device of a user, as encoded `EncryptedMessageProtocol`; empty while
        no bundle of the user is known."""
        known = self._bundles.get(peer.compressed.hex(), {})
        latest = sorted(known.items(), key=lambda item: -item[1][1])[:MAX_INSTALLATIONS]
        written = {}
        for device, (pre_key, _) in latest:
            session_id = self._current(peer, device) or self._begun(peer, device, pre_key)
            session = self._session(session_id)
            header, sealed = session.ratchet.encrypt(plain)
            message = status_pb2.EncryptedMessageProtocol(payload=sealed)
            message.dr_header.key = header.key
            message.dr_header.n, message.dr_header.pn = header.n, header.pn
            message.dr_header.id = session.bundle_id
            if not session.is_confirmed:
                message.x3dh_header.key = session.ephemeral
                message.x3dh_header.id = session.bundle_id
            self._keep(session_id, session)
            written[device] = message.SerializeToString()
        return written

    def decrypt(
        self,
        message: status_pb2.EncryptedMessageProtocol,
        sender: PublicKey,
        device: str,
        timestamp_ms: int,
    ) -> tuple[bytes, MessageKeyId] | Refused:
        """Decrypt a message of a device of the sender; a refused one has changed nothing but that
        the next message to the sender begins a new session, where the old one is lost."""
        head = message.dr_header
        if max(len(device), len(head.id)) > MAX_ID_LENGTH:
            detail = f"a device or bundle of more than {MAX_ID_LENGTH} letters"
            return Refused(RefusalReason.BAD_CIPHERTEXT, detail, sender)
        session_id = _session_id(sender, device, head.id)
        is_new = timestamp_ms > self._last_ms(_device_of(session_id))
        session = self._of_message(message, sender, session_id, is_new)
        if isinstance(session, Refused):
            return session
        header = RatchetHeader(head.key, head.n, head.pn)
        before = set(session.ratchet.keys)
        try:
            plain = session.ratchet.decrypt(header, message.payload)
        except TooManySkipped as error:
            return Refused(RefusalReason.TOO_MANY_SKIPPED, str(error), sender)
        except KeyUsed as error:
            return Refused(RefusalReason.REPEATED_KEY, str(error), sender)
        except RatchetError as error:
            if not is_new:
                detail = "older than what was read, and it does not open any more"
                return Refused(RefusalReason.REPEATED_KEY, detail, sender)
            self._break(sender, session_id)
            return Refused(RefusalReason.BAD_CIPHERTEXT, str(error)[:150], sender)
        if not session.is_broken:
            session.is_confirmed = True
        session.last_ms = max(session.last_ms, timestamp_ms)
        session.used = self._next_use(_device_of(session_id))
        self._add(session_id, session)
        after = session.ratchet.keys
        for key, n in before - set(after):
            self._store.delete("direct_message_keys", f"{session_id} {key.hex()} {n}")
        for (key, n), value in after.items():
            if (key, n) not in before:
                self._store.put("direct_message_keys", f"{session_id} {key.hex()} {n}", value)
        return plain, MessageKeyId(session_id, header.key, header.n)

    def confirm(self, key_id: MessageKeyId) -> None:
        """Delete the key of a message that is handled."""
        if key_id.session_id in self._raw:
            self._session(key_id.session_id).ratchet.confirm(key_id.key, key_id.n)
            name = f"{key_id.session_id} {key_id.key.hex()} {key_id.n}"
            self._store.delete("direct_message_keys", name)

    def lost(self, peer: PublicKey) -> None:
        """A device of a user writes in a session that is not here."""
        self._lost[peer] = None

    def take_lost(self) -> list[PublicKey]:
        """Users to write to now, if it is an empty message: it begins a new session."""
        lost = list(self._lost)
        self._lost.clear()
        return lost

    # -- inside -----------------------------------------------------------------------------------

    def _of_message(
        self,
        message: status_pb2.EncryptedMessageProtocol,
        sender: PublicKey,
        session_id: str,
        is_new: bool,
    ) -> _Session | Refused:
        session = self._session(session_id) if session_id in self._raw else None
        if not message.HasField("x3dh_header"):
            if session is None:
                if is_new:
                    self.lost(sender)
                detail = f"bundle {message.dr_header.id.hex()[:66]}"
                return Refused(RefusalReason.UNKNOWN_SESSION, detail, sender)
            return session
        begins = message.x3dh_header
        if begins.id != message.dr_header.id:
            detail = "X3DH_header and DR_header name different bundles"
            return Refused(RefusalReason.BAD_CIPHERTEXT, detail, sender)
        if session is not None and begins.key == session.ephemeral:
            return session
        if session is not None and begins.key in session.retired:
            return Refused(RefusalReason.REPEATED_KEY, "of a session that was replaced", sender)
        return self._answered(begins, sender, session, is_new)

    def _answered(
        self,
        begins: status_pb2.X3DHHeader,
        sender: PublicKey,
        before: _Session | None,
        is_new: bool,
    ) -> _Session | Refused:
        """A session that another device began with an own bundle."""
        own = {key.public_key.compressed: key for _, key in self._pre_keys}
        if (pre_key := own.get(begins.id)) is None:
            if is_new:
                self.lost(sender)
            detail = f"not a bundle of this device: {begins.id.hex()[:66]}"
            return Refused(RefusalReason.UNKNOWN_SESSION, detail, sender)
        try:
            ephemeral = PublicKey(begins.key)
        except ValueError as error:
            return Refused(RefusalReason.BAD_CIPHERTEXT, str(error)[:150], sender)
        secret = secret_of_responder(self._key, pre_key, sender, ephemeral)
        retired = [] if before is None else [*before.retired, before.ephemeral][-MAX_RETIRED:]
        ratchet = Ratchet.responder(secret, pre_key, new_key=self._new_key)
        last_ms = 0 if before is None else before.last_ms
        return _Session(begins.id, ratchet, begins.key, True, 0, retired=retired, last_ms=last_ms)

    def _begun(self, peer: PublicKey, device: str, pre_key_hex: str) -> str:
        """Begin a session with a device's bundle."""
        pre_key, ephemeral = PublicKey(bytes.fromhex(pre_key_hex)), self._new_key()
        secret = secret_of_initiator(self._key, ephemeral, peer, pre_key)
        ratchet = Ratchet.initiator(secret, pre_key, new_key=self._new_key)
        bundle_id = pre_key.compressed
        session_id = _session_id(peer, device, bundle_id)
        used = self._next_use(_device_of(session_id))
        begun = _Session(bundle_id, ratchet, ephemeral.public_key.compressed, False, used)
        self._add(session_id, begun)
        return session_id

    def _current(self, peer: PublicKey, device: str) -> str | None:
        """The session in which a device is written to."""
        ids = self._of_device.get(f"{peer.compressed.hex()} {device}", ())
        usable = [one for one in ids if not self._session(one).is_broken]
        return max(usable, key=lambda one: self._session(one).used, default=None)

    def _last_ms(self, device: str) -> int:
        same = self._of_device.get(device, ())
        return max((self._session(one).last_ms for one in same), default=0)

    def _next_use(self, device: str) -> int:
        same = self._of_device.get(device, ())
        return 1 + max((self._session(one).used for one in same), default=0)

    def _break(self, sender: PublicKey, session_id: str) -> None:
        """Write in a session no more: the other end is elsewhere, such as after a backup."""
        if session_id in self._raw:
            session = self._session(session_id)
            session.is_broken = True
            self._keep(session_id, session)
        self.lost(sender)

    def _session(self, session_id: str) -> _Session:
        session = self._live.get(session_id)
        if session is None:
            keys = self._keys.pop(session_id, OrderedDict())
            session = self._decoded(json.loads(self._raw[session_id]), keys)
            self._live[session_id] = session
        return session

    def _decoded(self, document: Any, keys: OrderedDict[tuple[bytes, int], bytes]) -> _Session:
        peer = document["peer"]
        state = RatchetState(
            bytes.fromhex(document["root"]),
            PrivateKey.from_hex(document["own"]),
            None if peer is None else PublicKey(bytes.fromhex(peer)),
            bytes.fromhex(document["sending"]),
            bytes.fromhex(document["receiving"]),
            *document["counts"],
        )
        return _Session(
            bytes.fromhex(document["bundle_id"]),
            Ratchet(state, keys, new_key=self._new_key),
            bytes.fromhex(document["ephemeral"]),
            document["is_confirmed"],
            document["used"],
            document["is_broken"],
            [bytes.fromhex(one) for one in document["retired"]],
            document["last_ms"],
        )

    def _add(self, session_id: str, session: _Session) -> None:
        if self._live.get(session_id) is not session:
            self._drop(session_id)  # what it replaces, with its message keys
            self._live[session_id] = session
            self._of_device.setdefault(_device_of(session_id), []).append(session_id)
        self._keep(session_id, session)
        same = self._of_device[_device_of(session_id)]
        if len(same) > MAX_PER_DEVICE:
            self._drop(min(same, key=lambda one: self._session(one).used))
        while len(self._raw) > MAX_SESSIONS:
            self._drop(next(iter(self._raw)))

    def _keep(self, session_id: str, session: _Session) -> None:
        self._raw[session_id] = session.encode()
        self._store.put("direct_sessions", session_id, self._raw[session_id])

    def _drop(self, session_id: str) -> None:
        if session_id not in self._raw:
            return
        session = self._session(session_id)
        for key, n in session.ratchet.keys:
            self._store.delete("direct_message_keys", f"{session_id} {key.hex()} {n}")
        del self._raw[session_id], self._live[session_id]
        self._of_device[_device_of(session_id)].remove(session_id)
        self._store.delete("direct_sessions", session_id)


def _session_id(peer: PublicKey, device: str, bundle_id: bytes) -> str:
    return f"{peer.compressed.hex()} {device} {bundle_id.hex()}"


def _device_of(session_id: str) -> str:
    return session_id.rsplit(" ", 1)[0]
