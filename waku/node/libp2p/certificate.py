"""TLS certificate for `wss`, from files that another program renews."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Final

from waku.node.errors import CannotListen

__all__ = ["Certificate"]

_log = logging.getLogger("waku.node.libp2p")


class Certificate:
    """TLS context that loads its certificate again when the certificate files change.

    Raises:
        CannotListen: the files cannot be read, or do not belong together.
    """

    def __init__(self, chain: Path, key: Path) -> None:
        self._chain, self._key = chain, key
        self.context: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            self._stamp = self._stamped()
            self._load()
        except (OSError, ssl.SSLError) as error:
            raise CannotListen(
                f"the certificate {chain} with the key {key} cannot be used: {error}; both must be "
                "PEM files, and belong together"
            ) from error

    def follow(self) -> None:
        """Read the certificate files again if they have changed. If the new files are broken, the
        context keeps the old certificate."""
        try:
            stamp = self._stamped()
            if stamp == self._stamp:
                return
            self._load()
        except (OSError, ssl.SSLError) as error:
            _log.warning("the new certificate %s cannot be used, the old stays: %s",
                         self._chain, error)  # fmt: skip
            return
        self._stamp = stamp
        _log.info("the certificate %s was read again", self._chain)

    def _stamped(self) -> tuple[int, int]:
        return self._chain.stat().st_mtime_ns, self._key.stat().st_mtime_ns

    def _load(self) -> None:
        self.context.load_cert_chain(self._chain, self._key)
