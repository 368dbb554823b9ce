"""As much of docker-py as the official REST harness calls, with embedded nodes for containers.

An image's name means nothing here; its command line is nwaku's.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from interop.compat.rest import BadFlag, Container, Engine
from waku.node import CannotListen

from . import _nsenter
from .errors import APIError, NotFound

__all__ = ["DockerClient", "from_env"]


@cache
def _engine() -> Engine:
    """One for the process, until it ends."""
    engine = Engine().__enter__()
    _nsenter.obey(engine)
    atexit.register(engine.__exit__, None, None, None)
    return engine


class Network:
    """Every node can be dialled under the address its flags say, so there is nothing to connect."""

    def connect(self, container: Container, ipv4_address: str) -> None:
        """Do nothing."""


class Networks:
    """The one network there is, under any name."""

    def list(self, names: Sequence[str]) -> list[Network]:
        return [Network()]

    def get(self, name: str) -> Network:
        return Network()


class Containers:
    """The nodes of this process."""

    def run(self, image: str, command: Sequence[str], **settings: Any) -> Container:
        """Start a node.

        Raises:
            APIError: a flag that is not known or cannot be obeyed, or a port that is taken.
        """
        try:
            return _engine().run(command)
        except (BadFlag, CannotListen) as error:
            raise APIError(str(error)) from error

    def get(self, container_id: str) -> Container:
        """A node by its id.

        Raises:
            NotFound: there is none.
        """
        try:
            return _engine().containers[container_id]
        except KeyError:
            raise NotFound(f"No such container: {container_id}") from None


@dataclass(frozen=True)
class DockerClient:
    """What `from_env` gives."""

    containers: Containers
    networks: Networks


def from_env() -> DockerClient:
    """A client of the engine of this process."""
    return DockerClient(Containers(), Networks())
