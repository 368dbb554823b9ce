"""`NodeWrapper` of the official Python bindings, on this SDK and its embedded node.

Where the bindings wait for a C library in a foreign thread, this one waits for an event loop in
another thread. Results, error texts and events are those of the bindings
(logos-delivery `tests-e2e/vendor/logos-delivery-python-bindings/waku/wrapper.py`), in whose place
this file can be put: it names what it needs in full.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from result import Err, Ok, Result

from interop.compat.config import BadConfig, NodeConfig, described
from interop.compat.delivery import DeliveryNode
from interop.compat.failures import Refused
from interop.compat.messaging import IN_PROCESS
from interop.compat.running import INFO_IDS

__all__ = ["NodeWrapper"]

T = TypeVar("T")
EventCallback = Callable[[int, bytes], object]

TIMEOUT_S: Final = 20.0
RET_OK: Final = 0
RET_ERR: Final = 1

_log = logging.getLogger(__name__)


def _is_of_the_outside(record: logging.LogRecord) -> bool:
    """Whether a request of httpx left the node: its cache is looked at all the time."""
    url = record.args[1] if isinstance(record.args, tuple) and len(record.args) > 1 else None
    return not str(url).startswith(IN_PROCESS)


logging.getLogger("httpx").addFilter(_is_of_the_outside)


class NodeWrapper:
    """A node as the suite's bindings offer it: blocking, every answer `Ok` or `Err`.

    Make one with `create_node` or `create_and_start`, end it with `stop_and_destroy`.
    """

    def __init__(
        self,
        node: DeliveryNode,
        portal: BlockingPortal,
        life: Future[None],
        resources: ExitStack,
    ) -> None:
        self._node = node
        self._portal: BlockingPortal | None = portal
        self._life = life
        self._resources = resources

    # -- life -------------------------------------------------------------------------------------

    @classmethod
    def create_node(
        cls,
        config: Mapping[str, Any],
        event_cb: EventCallback | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> Result[NodeWrapper, str]:
        """Make a node that does not run yet; `event_cb` gets a return code and JSON, in a thread of
        its own."""
        try:
            parsed = NodeConfig.of(config)
        except BadConfig as error:
            return Err(_not_ok("create_node", f"failed parseLogosDeliveryConf {error}"))
        resources = ExitStack()
        emitter = _Emitter(event_cb)
        resources.callback(emitter.close)
        portal = resources.enter_context(start_blocking_portal(name="waku node"))
        node = DeliveryNode(parsed, emitter.emit)
        life, _ = portal.start_task(node.live)
        return Ok(cls(node, portal, life, resources))

    @classmethod
    def create_and_start(
        cls,
        config: Mapping[str, Any],
        event_cb: EventCallback | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> Result[NodeWrapper, str]:
        """Make a node and start it."""
        created = cls.create_node(config, event_cb, timeout_s=timeout_s)
        if isinstance(created, Err):
            return created
        started = created.ok_value.start_node(timeout_s=timeout_s)
        if isinstance(started, Err):
            created.ok_value.destroy(timeout_s=timeout_s)
            return started
        return created

    def start_node(self, *, timeout_s: float = TIMEOUT_S) -> Result[int, str]:
        """Listen, and dial the nodes of the configuration."""
        return self._done("start_node", self._node.start, timeout_s)

    def stop_node(self, *, timeout_s: float = TIMEOUT_S) -> Result[int, str]:
        """Close the channels and leave the network; `start_node` comes back under the same name."""
        return self._done("stop_node", self._node.stop, timeout_s)

    def destroy(self, *, timeout_s: float = TIMEOUT_S) -> Result[int, str]:
        """Stop what runs, and its threads; twice does nothing."""
        portal, self._portal = self._portal, None
        if portal is None:
            return Ok(RET_OK)
        try:
            portal.call(self._node.end)
            self._life.result(timeout_s)
        except TimeoutError:
            self._life.cancel()
            return Err(f"destroy: timeout after {timeout_s}s")
        finally:
            self._resources.close()
        return Ok(RET_OK)

    def destroy_keep_ctx(self, *, timeout_s: float = TIMEOUT_S) -> Result[int, str]:
        """As `destroy`: what is called later finds no node, here by an error and never a crash."""
        return self.destroy(timeout_s=timeout_s)

    def stop_and_destroy(self, *, timeout_s: float = TIMEOUT_S) -> Result[int, str]:
        """Stop, and destroy even where stopping fails."""
        stopped = self.stop_node(timeout_s=timeout_s)
        destroyed = self.destroy(timeout_s=timeout_s)
        return stopped if isinstance(stopped, Err) else destroyed

    # -- messaging --------------------------------------------------------------------------------

    def subscribe_content_topic(
        self, content_topic: str, *, timeout_s: float = TIMEOUT_S
    ) -> Result[int, str]:
        """Have `message_received` emitted for a content topic."""
        call = partial(self._node.subscribe, content_topic)
        return self._done("subscribe_content_topic", call, timeout_s, f"subscribe({content_topic})")

    def unsubscribe_content_topic(
        self, content_topic: str, *, timeout_s: float = TIMEOUT_S
    ) -> Result[int, str]:
        call = partial(self._node.unsubscribe, content_topic)
        what = f"unsubscribe({content_topic})"
        return self._done("unsubscribe_content_topic", call, timeout_s, what)

    def send_message(
        self, message: Mapping[str, Any], *, timeout_s: float = TIMEOUT_S
    ) -> Result[str, str]:
        """Send `contentTopic`, base64 `payload` and `ephemeral`; return the request id."""
        call = partial(self._node.send, message)
        return self._call("send_message", call, timeout_s, shown=_failed)

    # -- channels: the bindings pass on the library's text as it is -------------------------------

    def channel_create(
        self, channel_id: str, content_topic: str, sender_id: str, *, timeout_s: float = TIMEOUT_S
    ) -> Result[str, str]:
        """Open a reliable channel; return its id."""
        call = partial(self._node.channel_create, channel_id, content_topic, sender_id)
        return self._call("channel_create", call, timeout_s, f"channel_create({channel_id})")

    def channel_exists(self, channel_id: str, *, timeout_s: float = TIMEOUT_S) -> Result[bool, str]:
        """Whether there is a channel of that id."""
        call = partial(self._node.channel_exists, channel_id)
        return self._call("channel_exists", call, timeout_s, f"channel_exists({channel_id})")

    def channel_send(
        self, channel_id: str, message: Mapping[str, Any], *, timeout_s: float = TIMEOUT_S
    ) -> Result[str, str]:
        """Send base64 `payload` to all participants; return the request id."""
        call = partial(self._node.channel_send, channel_id, message)
        return self._call("channel_send", call, timeout_s, f"channel_send({channel_id})")

    def channel_close(self, channel_id: str, *, timeout_s: float = TIMEOUT_S) -> Result[str, str]:
        """Close a channel; its state stays for the next one of its id and sender."""
        call = partial(self._node.channel_close, channel_id)
        return self._call("channel_close", call, timeout_s, f"channel_close({channel_id})")

    # -- what there is to know --------------------------------------------------------------------

    def get_available_node_info_ids(
        self, *, timeout_s: float = TIMEOUT_S
    ) -> Result[list[str], str]:
        """What `get_node_info` can be asked."""
        return Ok(list(INFO_IDS))

    def get_node_info(self, node_info_id: str, *, timeout_s: float = TIMEOUT_S) -> Result[str, str]:
        """A fact about the running node, as text; empty is what it does not have, such as an
        ENR."""
        call = partial(self._node.info, node_info_id)
        return self._call("get_node_info", call, timeout_s, shown=_failed)

    def get_available_configs(self, *, timeout_s: float = TIMEOUT_S) -> Result[dict[str, Any], str]:
        """The options of a configuration."""
        return Ok({"configOptions": described()})

    # -- how a call crosses -----------------------------------------------------------------------

    def _done(
        self,
        name: str,
        call: Callable[[], Awaitable[None]],
        timeout_s: float,
        what: str | None = None,
    ) -> Result[int, str]:
        """A call without an answer."""
        answer = self._call(name, call, timeout_s, what, shown=_not_ok)
        return answer if isinstance(answer, Err) else Ok(RET_OK)

    def _call(
        self,
        name: str,
        call: Callable[[], Awaitable[T]],
        timeout_s: float,
        what: str | None = None,
        *,
        shown: Callable[[str, str], str] = lambda what, text: text,
    ) -> Result[T, str]:
        """Run a call in the node's event loop, and put what it answers as the bindings do.

        Args:
            name: the method.
            call: what to run.
            timeout_s: how long to wait for it; then it is cancelled.
            what: the call as errors name it, where that is not the method's name.
            shown: the binding's way of putting the library's text.
        """
        if self._portal is None:
            return Err(f"{name}: immediate call failed (ret={RET_ERR})")
        future = self._portal.start_task_soon(call)
        try:
            return Ok(future.result(timeout_s))
        except TimeoutError:
            future.cancel()
            return Err(f"{what or name}: timeout after {timeout_s}s")
        except Refused as error:
            return Err(shown(what or name, str(error)))


class _Emitter:
    """Hands events to the callback one by one, in a thread that may block."""

    def __init__(self, callback: EventCallback | None) -> None:
        self._callback = callback
        self._events: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="waku events", daemon=True)
        self._thread.start()

    def emit(self, event: dict[str, Any]) -> None:
        self._events.put(event)

    def close(self) -> None:
        """Emit what is queued, then end the thread."""
        self._events.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            if self._callback is not None:
                try:
                    self._callback(RET_OK, json.dumps(event, separators=(",", ":")).encode())
                except Exception:
                    _log.exception("the event callback failed at %s", event["eventType"])


def _not_ok(what: str, text: str) -> str:
    return f"callback failed in _wait_cb_ok: {what} (ret={RET_ERR}) msg={text.encode()!r}"


def _failed(what: str, text: str) -> str:
    return f"{what}: callback failed (ret={RET_ERR}) msg={text.encode()!r}"
