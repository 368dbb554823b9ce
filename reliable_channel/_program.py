"""Running a program that has channels open, so that a signal closes them."""

import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, TypeVarTuple

import anyio

from ._terminal_text import printable
from .errors import SettingsError

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit status of a program that Ctrl-C ended."""

WRONG_SETTING: Final = 2
"""Exit status of a program that a wrong setting ended."""

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


def run(
    main: Callable[[*Arguments], Awaitable[Result]],
    *arguments: *Arguments,
    backend: str = "asyncio",
) -> Result | None:
    """Run an asynchronous program; SIGINT and SIGTERM cancel it, so that its channels close.

    Takes the place of `anyio.run`, under which SIGTERM ends the process at once. Service managers
    and containers stop a program with SIGTERM. Call it from the main thread. A second signal does
    not wait for anything. Signals that the process ignores stay ignored.

    Returns:
        What `main` returns, or None where SIGTERM ended it.

    Raises:
        SystemExit: SIGINT (Ctrl-C) ended it. The status is 130, as a shell has it. Or a setting is
            wrong (`SettingsError`). The status is 2, and standard error has one line.
        NotImplementedError: event loops of Windows take no signals; call `anyio.run` there.
    """
    if sys.platform == "win32":
        raise NotImplementedError(
            "`run` needs POSIX signals, which event loops on Windows do not support; call "
            "`anyio.run(main)`, and end the program with Ctrl-C"
        )

    async def call() -> Result:
        return await main(*arguments)

    try:
        return anyio.run(_until_signal, call, backend=backend)
    except SettingsError as error:
        sys.stderr.write(f"error: {printable(str(error))}\n")
        raise SystemExit(WRONG_SETTING) from error


async def _until_signal(call: Callable[[], Awaitable[Result]]) -> Result | None:
    result: Result | None = None
    failure: Exception | None = None
    received: list[signal.Signals] = []
    heeded = [each for each in STOP_SIGNALS if signal.getsignal(each) != signal.SIG_IGN]

    async def heed(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(*heeded) as signals:
            task_status.started()
            async for number in signals:
                received.append(number)
                break
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        if heeded:
            await tasks.start(heed)
        try:
            result = await call()
        except Exception as error:  # raised below as it is, not in the group of these two tasks
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if signal.SIGINT in received:
        raise SystemExit(INTERRUPTED)
    return result
