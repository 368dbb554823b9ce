"""Requests to peers, sent to several peers at once or, after a failure, to further peers."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from waku import errors
from waku.errors import WakuError

from .keeper import Chosen, Keeper
from .peer_book import Entry
from .protocols import Role
from .service_peer import ServicePeer

__all__ = ["Asker"]

BEHIND_S: Final = 10.0
"""Extra time (s) for slower peers after the first peer has accepted the message. After this time
the queue of a slower peer counts as too long."""

_Answer = TypeVar("_Answer")


class Asker:
    """Sender of requests to the peers that a keeper has connected."""

    def __init__(self, keeper: Keeper, tasks: TaskGroup) -> None:
        self._keeper = keeper
        self._tasks = tasks

    async def ask(
        self,
        role: Role,
        request: Callable[[Entry, ServicePeer], Awaitable[_Answer]],
        *,
        count: int = 1,
        first: Entry | None = None,
        besides: Collection[Entry] = (),
    ) -> tuple[Entry, _Answer] | None:
        """Ask `count` peers at once, then further peers, until a peer answers. Return the first
        answer.

        If `first` is connected, ask it alone before other peers. Return None if no peer is left
        except the peers in `besides`.

        Raises:
            WakuError: no peer can be asked, a peer says that the request is wrong, or all failed.
        """
        asked = list(besides)
        failure: WakuError | None = None
        while True:
            if first is not None and first in self._keeper.peers:
                chosen = [(first, self._keeper.peers[first])]
                first = None
            else:
                chosen = await self._keeper.serving(role, count, besides=asked)
            if not chosen:
                if failure is not None:
                    raise failure
                return None
            asked += [entry for entry, _ in chosen]
            try:
                if len(chosen) == 1:
                    return chosen[0][0], await self._one(role, chosen[0], request)
                return await self._race(role, chosen, request)
            except errors.RlnProofRequired as error:
                failure = error  # another peer may attach proofs
            except (errors.LocalError, errors.CursorExpired):
                raise
            except WakuError as error:
                failure = error

    async def _one(
        self, role: Role, which: Chosen, request: Callable[[Entry, ServicePeer], Awaitable[_Answer]]
    ) -> _Answer:
        try:
            answer = await request(*which)
        except WakuError as error:
            self._keeper.refused(which[0], role, error)
            raise
        self._keeper.answered(which[0], role)
        return answer

    async def _race(
        self,
        role: Role,
        chosen: Collection[Chosen],
        request: Callable[[Entry, ServicePeer], Awaitable[_Answer]],
    ) -> tuple[Entry, _Answer]:
        """The first good answer. The other requests go on behind it."""
        outcomes: deque[tuple[Entry, _Answer] | WakuError] = deque()
        arrived = anyio.Event()
        scopes = [anyio.CancelScope() for _ in chosen]

        async def run(which: Chosen, scope: anyio.CancelScope) -> None:
            with scope:
                try:
                    outcomes.append((which[0], await self._one(role, which, request)))
                except WakuError as error:
                    outcomes.append(error)
                arrived.set()
            if scope.cancelled_caught:
                detail = f"no answer {BEHIND_S:g} s after the call was over"
                call = role.value.replace(" ", "_")
                self._keeper.refused(which[0], role, errors.NodeUnreachable(call, detail=detail))

        for which, scope in zip(chosen, scopes, strict=True):
            self._tasks.start_soon(run, which, scope)
        failure: WakuError | None = None
        try:
            for _ in chosen:
                if not outcomes:
                    arrived = anyio.Event()
                    await arrived.wait()
                outcome = outcomes.popleft()
                if not isinstance(outcome, WakuError):
                    return outcome
                failure = failure if isinstance(failure, errors.LocalError) else outcome
        finally:
            for scope in scopes:
                scope.deadline = anyio.current_time() + BEHIND_S
        assert failure is not None
        raise failure
