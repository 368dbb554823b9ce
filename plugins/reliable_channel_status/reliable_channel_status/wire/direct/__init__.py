"""Direct messages: one to one and in private groups, encrypted for devices. No I/O, no clock."""

from ..outcomes import MessageKeyId
from .bundles import (
    Bundle,
    SignedPreKey,
    read_bundle,
    secret_of_initiator,
    secret_of_responder,
    sign_bundle,
)
from .correspondence import Correspondence, DirectPayload
from .datasync import (
    DataSync,
    DataSyncMessage,
    DataSyncPayload,
    Pending,
    group_of,
    read_datasync,
)
from .dh import decrypt_dh, encrypt_dh
from .groups import BadGroup, Group, MembershipEvent, MembershipEventType, read_event, sign_event
from .ratchet import Ratchet, RatchetError, RatchetHeader, RatchetState
from .session_store import MemorySessionStore, SessionStore
from .sessions import Sessions

__all__ = [
    "BadGroup",
    "Bundle",
    "Correspondence",
    "DataSync",
    "DataSyncMessage",
    "DataSyncPayload",
    "DirectPayload",
    "Group",
    "MembershipEvent",
    "MembershipEventType",
    "MemorySessionStore",
    "MessageKeyId",
    "Pending",
    "Ratchet",
    "RatchetError",
    "RatchetHeader",
    "RatchetState",
    "SessionStore",
    "Sessions",
    "SignedPreKey",
    "decrypt_dh",
    "encrypt_dh",
    "group_of",
    "read_bundle",
    "read_datasync",
    "read_event",
    "secret_of_initiator",
    "secret_of_responder",
    "sign_bundle",
    "sign_event",
]
