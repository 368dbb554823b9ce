"""Direct messages: one to one and in private groups, encrypted for devices. No I/O, no clock."""

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

__all__ = [
    "Correspondence",
    "DataSync",
    "DataSyncMessage",
    "DataSyncPayload",
    "DirectPayload",
    "Pending",
    "decrypt_dh",
    "encrypt_dh",
    "group_of",
    "read_datasync",
]
