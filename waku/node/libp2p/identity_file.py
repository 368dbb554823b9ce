"""Key file of a node, so that a restart keeps its peer id and addresses."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from waku.libp2p import InvalidInput, KeyType, PrivateKey
from waku.node.errors import CannotListen

__all__ = ["IdentityFile"]

SECRET_BYTES: Final = 32
OWNER_ONLY: Final = 0o600


class IdentityFile:
    """File with a secp256k1 secret as 64 hexadecimal digits, as in go-waku and nwaku (`--nodekey`).

    A missing file is created. Only one node may use the file at a time, until it calls `close`.
    Peers keep only one connection for each peer id (T17).

    Raises:
        CannotListen: it cannot be read or made, others may read it, another node has it, or it is
            no key.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = FileLock(f"{path}.lock", timeout=0)
            self._lock.acquire()
        except Timeout:
            raise CannotListen(
                f"another node uses the identity {path}; give this one another file (--identity)"
            ) from None
        except OSError as error:
            raise CannotListen(f"the identity {path} cannot be used: {error.strerror}") from error
        try:
            self.key = self._read() if path.exists() else self._make()
        except OSError as error:
            self.close()
            why = error.strerror or str(error)
            raise CannotListen(f"the identity {path} cannot be used: {why}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the key file for another node."""
        self._lock.release()

    def _read(self) -> PrivateKey:
        if os.name == "posix" and self._path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise CannotListen(
                f"others may read the identity {self._path}: run chmod 600 {self._path}, or delete "
                "it if they have"
            )
        text = self._path.read_text("ascii", errors="replace").strip()
        try:
            return PrivateKey(KeyType.SECP256K1, bytes.fromhex(text))
        except (ValueError, InvalidInput):
            raise CannotListen(
                f"{self._path} is no identity: it must have {2 * SECRET_BYTES} hexadecimal digits; "
                "delete it for a new one"
            ) from None

    def _make(self) -> PrivateKey:
        secret = os.urandom(SECRET_BYTES)
        key = PrivateKey(KeyType.SECP256K1, secret)
        new = self._path.with_name(self._path.name + ".new")
        new.unlink(missing_ok=True)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        with os.fdopen(file, "w", encoding="ascii") as out:
            out.write(secret.hex() + "\n")
            out.flush()
            os.fsync(out.fileno())
        new.replace(self._path)
        return key
