"""Plugins that see the events of a channel; one that fails is set aside, and the rest goes on."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from ..events import Event, ObserverSetAside
from ..plugin_calls import told


class Observer(Protocol):
    """A plugin's hook `observe`."""

    @property
    def plugin(self) -> str:
        """The plugin's name."""
        ...

    def __call__(self, *, channel_id: str, sender_id: str, event: Event, at_ms: int) -> object:
        """See an event."""
        ...


class Observers:
    """The observers of one channel."""

    def __init__(self, observers: Sequence[Observer], channel_id: str, sender_id: str) -> None:
        self._observers = list(observers)
        self._channel_id = channel_id
        self._sender_id = sender_id

    def tell(self, event: Event, at_ms: int) -> Iterator[ObserverSetAside]:
        """Show them an event, and say who failed at it."""
        for observer in tuple(self._observers):
            if (reason := self._failure(observer, event, at_ms)) is not None:
                self._observers.remove(observer)
                yield ObserverSetAside(observer.plugin, reason)

    def _failure(self, observer: Observer, event: Event, at_ms: int) -> str | None:
        try:
            answer = observer(
                channel_id=self._channel_id, sender_id=self._sender_id, event=event, at_ms=at_ms
            )
        except Exception as error:  # whatever it is: a channel does not end for who watches it
            return f"it raised {error!r} at {event.wire_name}"
        if answer is None:
            return None
        return f"it returned {told(answer)} at {event.wire_name}; allowed is None"
