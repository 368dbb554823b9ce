"""ndnd's forwarder, with a gate before it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from ..needed import PATIENCE_S
from .gate import Gate, gate
from .members import running


@asynccontextmanager
async def forwarding(program: Path) -> AsyncIterator[Gate]:
    """A separate forwarder for one test: the gate's target, and the gate."""
    # Not tmp_path: the path of a unix socket has at most 107 characters.
    with TemporaryDirectory(prefix="svs") as directory:
        socket = Path(directory) / "forwarder"
        async with (
            running(program, "forwarder", "-unix", str(socket)),
            gate(Path(directory) / "gate", socket) as between,
        ):
            with anyio.fail_after(PATIENCE_S):
                while not await _listens(socket):  # noqa: ASYNC110 - another process makes it
                    await anyio.sleep(0.02)
            yield between


async def _listens(socket: Path) -> bool:
    """Whether connections are taken: the file is there a moment earlier."""
    try:
        await (await anyio.connect_unix(socket)).aclose()
    except OSError:
        return False
    return True
