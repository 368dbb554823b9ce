"""Plugins that see the events of a channel; one that fails is set aside, and the rest goes on."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from ..calls import SLOW_S
from ..errors import PluginError
from ..events import Event, ObserverSetAside, ObserverSlow
from ..guard import NOTHING, Guard
from ..health import ChannelHealth


class Observer(Protocol):
    """A function that a plugin registered."""

    @property
    def plugin(self) -> str:
        """The plugin's name."""
        ...

    def __call__(
        self,
        *,
        channel_id: str,
        sender_id: str,
        event: Event,
        at_ms: int,
        health: Callable[[], ChannelHealth],
    ) -> object:
        """See an event."""
        ...


class Observers:
    """The observers of one channel."""

    def __init__(
        self,
        observers: Sequence[Observer],
        channel_id: str,
        sender_id: str,
        health: Callable[[], ChannelHealth],
        now_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._observers = list(observers)
        self._channel_id = channel_id
        self._sender_id = sender_id
        self._health = health
        self._now_s = now_s
        self._slow: set[str] = set()

    def emit(self, event: Event, at_ms: int) -> Iterator[ObserverSetAside | ObserverSlow]:
        """Show them an event; return those that failed at it or took long."""
        for observer in tuple(self._observers):
            began_s = self._now_s()
            reason = self._failure(observer, event, at_ms)
            took_s = self._now_s() - began_s
            if reason is not None:
                self._observers.remove(observer)
                yield ObserverSetAside(observer.plugin, reason)
            elif took_s >= SLOW_S and observer.plugin not in self._slow:
                self._slow.add(observer.plugin)  # once: this event takes it long, too
                yield ObserverSlow(observer.plugin, round(1000 * took_s))

    def _failure(self, observer: Observer, event: Event, at_ms: int) -> str | None:
        guard = Guard(f"plugin {observer.plugin!r}")
        try:
            with guard.watching("observe"):
                value = observer(
                    channel_id=self._channel_id,
                    sender_id=self._sender_id,
                    event=event,
                    at_ms=at_ms,
                    health=self._health,
                )
            guard.checked("observe", value, NOTHING)
        except PluginError as error:
            return f"{error} at {event.wire_name}"
        return None
