"""Observers of a channel's events, which plugins register. If an observer fails, it is removed, and
the other observers continue."""

import time
from collections.abc import Callable, Iterator, Sequence

from .._contracts.plugin_code import SLOW_S
from ..diagnostics import ObserverSetAside, ObserverSlow
from ..events import AnyEvent
from ..health import ChannelHealth

Observe = Callable[..., object]
"""Observer function of a plugin. The function is called with the keywords that
`hooks.register_observers` lists."""


class Observers:
    """Observers of one channel, each with the name of its plugin."""

    def __init__(
        self,
        observers: Sequence[tuple[str, Observe]],
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

    def emit(self, event: AnyEvent, at_ms: int) -> Iterator[ObserverSetAside | ObserverSlow]:
        """Pass an event to the observers. Yield an event for each observer that failed or was
        slow."""
        for observer in tuple(self._observers):
            plugin, observe = observer
            began_s = self._now_s()
            try:
                observe(
                    channel_id=self._channel_id,
                    sender_id=self._sender_id,
                    event=event,
                    at_ms=at_ms,
                    health=self._health,
                )
            except Exception as error:  # an observer's failure is no failure of the channel
                self._observers.remove(observer)
                reason = f"plugin {plugin!r}: observe failed: {error!r} at {event.wire_name}"
                yield ObserverSetAside(plugin, reason)
                continue
            took_s = self._now_s() - began_s
            if took_s >= SLOW_S and plugin not in self._slow:
                self._slow.add(plugin)  # once: this event takes it long, too
                yield ObserverSlow(plugin, round(1000 * took_s))
