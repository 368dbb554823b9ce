"""Ratchet sessions of one device with devices of other users (54/WAKU2-X3DH-SESSIONS).

A session belongs to a peer's device and to the bundle with which it began. A session also belongs
to the installation id by which the peer knows this device. status-go keeps one session for each
bundle and installation id, and never replaces the session. If a session is lost, this device
therefore uses a new installation id for that peer. Changes are put into the store before `encrypt`
and `decrypt` return. The caller makes the store durable before it sends a message. The module has
no I/O and no clock.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

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
    TooManySkipped,
)
from .session_store import RatchetSession, SessionStore

MAX_INSTALLATIONS: Final = 3
"""Maximum number of a user's devices that receive messages, those seen last (as in status-go)."""
MAX_SESSIONS: Final = 20_000
"""Maximum number of stored sessions. Beyond the maximum, the oldest session is evicted."""
MAX_PER_DEVICE: Final = 4
"""Maximum number of sessions with one device, one for each bundle that began a session."""
MAX_BUNDLES: Final = 20_000
"""Maximum number of stored pre-keys of other users' devices."""
MAX_RETIRED: Final = 16
"""Number of remembered starts of replaced sessions, so that a replay does not restore a session."""
MAX_PRE_KEYS: Final = 64
"""Maximum number of own pre-keys that are kept for late messages."""
PRE_KEY_MS: Final = 24 * 3600 * 1000
"""Age at which the device publishes a new pre-key (`BundleRefreshInterval`)."""
RENEWED_PRE_KEY_MS: Final = 3600 * 1000
"""Minimum age of a pre-key that a lost session replaces. A lower age would let strangers fill the
list of own pre-keys (`MAX_PRE_KEYS`)."""
MAX_RENEWED: Final = 20_000
"""Maximum number of peers for which lost sessions are remembered. Beyond the maximum, the device
uses its first installation id again for the oldest peer."""


class Sessions:
    """Ratchet sessions of one device with all peers.

    Args:
        key: of the device's owner.
        installation_id: names the device; not empty.
        store: what is kept.
        new_key: gives ratchet keys, ephemeral keys and pre-keys.
        new_id: gives installation ids for peers whose sessions are lost.
    """

    def __init__(
        self,
        key: PrivateKey,
        installation_id: str,
        store: SessionStore,
        *,
        new_key: Callable[[], PrivateKey] = PrivateKey.generate,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._key = key
        self.installation_id: Final = installation_id
        self._store = store
        self._new_key = new_key
        self._new_id = new_id
        self._renewed: OrderedDict[str, list[str]] = OrderedDict(
            (name, json.loads(value)) for name, value in store.rows("direct_installations")
        )
        """The ids under which a peer knows this device since its sessions were lost."""
        self._raw: OrderedDict[str, bytes] = OrderedDict(store.rows("direct_sessions"))
        self._live: dict[str, RatchetSession] = {}
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
        self._lost: dict[PublicKey, bool] = {}

    # -- bundles ----------------------------------------------------------------------------------

    def installation_ids(self, peer: PublicKey) -> Sequence[str]:
        """Return the present and the previous installation id of this device for a peer."""
        return self._renewed.get(peer.compressed.hex()) or [self.installation_id]

    def bundle(self, now_ms: int, peer: PublicKey) -> Bundle:
        """Return the device's own bundle, which each direct message to a peer contains. The
        device's bundle gets a new pre-key once a day."""
        if not self._pre_keys or now_ms - self._pre_keys[-1][0] >= PRE_KEY_MS:
            self._make_pre_key(now_ms)
        made_ms, pre_key = self._pre_keys[-1]
        # status-go lets go of what has a lower version: a count would fall back with a backup.
        device = SignedPreKey(pre_key.public_key, version=made_ms // 1000)
        devices = {self.installation_ids(peer)[0]: device}
        return sign_bundle(self._key, devices, now_ms * 1_000_000)

    def _make_pre_key(self, now_ms: int) -> None:
        pre_key = self._new_key()
        self._pre_keys.append((now_ms, pre_key))
        self._store.put("direct_pre_keys", f"{now_ms}", pre_key.reveal())
        while len(self._pre_keys) > MAX_PRE_KEYS:
            made_ms, _ = self._pre_keys.pop(0)
            self._store.delete("direct_pre_keys", f"{made_ms}")

    def learn(self, raw: status_pb2.Bundle, sender: PublicKey) -> Refused | None:
        """Store a sender's bundle, unless a later bundle is stored. Bundles of users other than the
        sender are ignored."""
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
        """Return an encrypted message for each device of a user (`EncryptedMessageProtocol`). While
        no bundle of the user is known, the result is empty."""
        known = self._bundles.get(peer.compressed.hex(), {})
        latest = sorted(known.items(), key=lambda item: -item[1][1])[:MAX_INSTALLATIONS]
        written = {}
        for device, (pre_key, _) in latest:
            own = self.installation_ids(peer)[0]
            session_id = self._current(peer, own, device) or self._begun(peer, own, device, pre_key)
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
        own: str,
        timestamp_ms: int,
    ) -> tuple[bytes, MessageKeyId] | Refused:
        """Decrypt a message from a sender's device to one of this device's installation ids. A
        refused message changes no session, but `take_lost` may return its sender."""
        head = message.dr_header
        if max(len(device), len(head.id)) > MAX_ID_LENGTH:
            detail = f"a device or bundle of more than {MAX_ID_LENGTH} letters"
            return Refused(RefusalReason.BAD_CIPHERTEXT, detail, sender)
        session_id = _session_id(sender, own, device, head.id)
        is_new = timestamp_ms > self._last_ms(_device_of(session_id))
        session = self._of_message(message, sender, session_id, own, is_new)
        if isinstance(session, Refused):
            return session
        header = RatchetHeader(head.key, head.n, head.pn)
        before = set(session.ratchet.keys)
        try:
            plain = session.ratchet.decrypt(header, message.payload)
        except TooManySkipped as error:
            if is_new:
                self.lost(sender, own)
            return Refused(RefusalReason.TOO_MANY_SKIPPED, str(error), sender)
        except KeyUsed as error:
            return Refused(RefusalReason.REPEATED_KEY, str(error), sender)
        except RatchetError as error:
            if not is_new:
                detail = "older than what was read, and it does not open any more"
                return Refused(RefusalReason.REPEATED_KEY, detail, sender)
            self.lost(sender, own)
            return Refused(RefusalReason.BAD_CIPHERTEXT, str(error)[:150], sender)
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
        """Delete the encryption key of a handled message."""
        if key_id.session_id in self._raw:
            self._session(key_id.session_id).ratchet.confirm(key_id.key, key_id.n)
            name = f"{key_id.session_id} {key_id.key.hex()} {key_id.n}"
            self._store.delete("direct_message_keys", name)

    def lost(self, peer: PublicKey, own: str | None = None) -> None:
        """Note that a user's device writes in a session that this device lacks.

        Args:
            peer: the user.
            own: the installation id that it wrote to; None for one that is not this device's.
        """
        is_current = own == self.installation_ids(peer)[0]
        self._lost[peer] = is_current or self._lost.get(peer, False)

    def take_lost(self) -> dict[PublicKey, bool]:
        """Return users that write in sessions which this device lacks, and so need a message now.
        The value is True for users that first need `renew`."""
        lost, self._lost = self._lost, {}
        return lost

    def renew(self, peer: PublicKey, now_ms: int) -> None:
        """Use a new installation id for a user, with a pre-key that is at most an hour old."""
        name = peer.compressed.hex()
        self._renewed[name] = [self._new_id(), *self.installation_ids(peer)][:2]
        self._renewed.move_to_end(name)
        self._store.put("direct_installations", name, json.dumps(self._renewed[name]).encode())
        if len(self._renewed) > MAX_RENEWED:
            self._store.delete("direct_installations", self._renewed.popitem(last=False)[0])
        kept = tuple(f"{name} {own} " for own in self.installation_ids(peer))
        for session_id in [one for one in self._raw if one.startswith(f"{name} ")]:
            if not session_id.startswith(kept):
                self._drop(session_id)
        if self._pre_keys and now_ms - self._pre_keys[-1][0] >= RENEWED_PRE_KEY_MS:
            self._make_pre_key(now_ms)

    # -- inside -----------------------------------------------------------------------------------

    def _of_message(
        self,
        message: status_pb2.EncryptedMessageProtocol,
        sender: PublicKey,
        session_id: str,
        own: str,
        is_new: bool,
    ) -> RatchetSession | Refused:
        session = self._session(session_id) if session_id in self._raw else None
        if not message.HasField("x3dh_header"):
            if session is None:
                if is_new:
                    self.lost(sender, own)
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
        return self._answered(begins, sender, session, own, is_new)

    def _answered(
        self,
        begins: status_pb2.X3DHHeader,
        sender: PublicKey,
        before: RatchetSession | None,
        own: str,
        is_new: bool,
    ) -> RatchetSession | Refused:
        """A session that another device began with an own bundle."""
        pre_keys = {key.public_key.compressed: key for _, key in self._pre_keys}
        if (pre_key := pre_keys.get(begins.id)) is None:
            if is_new:
                self.lost(sender, own)
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
        return RatchetSession(
            begins.id, ratchet, begins.key, True, 0, retired=retired, last_ms=last_ms
        )

    def _begun(self, peer: PublicKey, own: str, device: str, pre_key_hex: str) -> str:
        """Begin a session with a device's bundle."""
        pre_key, ephemeral = PublicKey(bytes.fromhex(pre_key_hex)), self._new_key()
        secret = secret_of_initiator(self._key, ephemeral, peer, pre_key)
        ratchet = Ratchet.initiator(secret, pre_key, new_key=self._new_key)
        bundle_id = pre_key.compressed
        session_id = _session_id(peer, own, device, bundle_id)
        used = self._next_use(_device_of(session_id))
        begun = RatchetSession(bundle_id, ratchet, ephemeral.public_key.compressed, False, used)
        self._add(session_id, begun)
        return session_id

    def _current(self, peer: PublicKey, own: str, device: str) -> str | None:
        """Return the session in which a device is written to."""
        ids = self._of_device.get(f"{peer.compressed.hex()} {own} {device}", ())
        return max(ids, key=lambda one: self._session(one).used, default=None)

    def _last_ms(self, device: str) -> int:
        same = self._of_device.get(device, ())
        return max((self._session(one).last_ms for one in same), default=0)

    def _next_use(self, device: str) -> int:
        same = self._of_device.get(device, ())
        return 1 + max((self._session(one).used for one in same), default=0)

    def _session(self, session_id: str) -> RatchetSession:
        session = self._live.get(session_id)
        if session is None:
            keys = self._keys.pop(session_id, OrderedDict())
            session = RatchetSession.decode(self._raw[session_id], keys, self._new_key)
            self._live[session_id] = session
        return session

    def _add(self, session_id: str, session: RatchetSession) -> None:
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

    def _keep(self, session_id: str, session: RatchetSession) -> None:
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


def _session_id(peer: PublicKey, own: str, device: str, bundle_id: bytes) -> str:
    return f"{peer.compressed.hex()} {own} {device} {bundle_id.hex()}"


def _device_of(session_id: str) -> str:
    return session_id.rsplit(" ", 1)[0]
