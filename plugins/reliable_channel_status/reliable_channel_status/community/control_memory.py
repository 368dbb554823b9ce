"""Memory of a control node, in a state file of its own beside the file of the community's key.

The state file has one owner at a time, so two bots cannot run the same community. Each change is
written in one transaction, before the change is published.
"""

from typing import Any, Final

from reliable_channel.spi import Identity, Recorder, StateStore, Table

from ..wire.codec import decode_payload, encode_payload
from ..wire.community_payloads import CommunityDescription
from ..wire.enums import PayloadType
from ..wire.keys import PrivateKey, PublicKey
from .control_node import ControlNode, Request

_DESCRIPTIONS: Final = Table("control_descriptions", (("name", "TEXT"), ("payload", "BLOB")))
_REQUESTS: Final = Table(
    "control_requests",
    (
        ("user", "TEXT"),
        ("clock", "INTEGER"),
        ("state", "TEXT"),
        ("display_name", "TEXT"),
        ("is_answered", "INTEGER"),
        ("number", "INTEGER"),
    ),
)
_REMOVED: Final = Table("control_removed", (("user", "TEXT"), ("clock", "INTEGER")))
_NUMBERS: Final = Table("control_numbers", (("name", "TEXT"), ("value", "INTEGER")))


class ControlMemory:
    """Stored state of a community's control node.

    Raises:
        StateError: the store cannot be used, such as while another bot has it.
    """

    def __init__(self, store: StateStore, key: PrivateKey) -> None:
        self._store = store
        self._recorder = Recorder()
        rows: Any = store.open(Identity("control-node", key.public_key.hex, "status")).tables
        self._numbers: dict[str, int] = dict(rows.get(_NUMBERS.name, ()))
        self._descriptions = {
            name: _decoded(payload) for name, payload in rows.get(_DESCRIPTIONS.name, ())
        }
        kept = sorted(rows.get(_REQUESTS.name, ()), key=lambda row: row[-1])
        self.removed: dict[PublicKey, int] = {
            PublicKey.parse(user): clock for user, clock in rows.get(_REMOVED.name, ())
        }
        """Members that were kicked or banned and lack a notice, by the clock of the description."""
        self._requests = {request.user: request for request in map(_request, kept)}
        self._last = kept[-1][-1] if kept else 0
        self.node = ControlNode(
            key,
            description=self._descriptions.get("description"),
            newer=self._descriptions.get("newer"),
            requests=tuple(self._requests.values()),
            forgotten_s=self._numbers.get("forgotten_s", 0),
        )

    @property
    def published_clock(self) -> int:
        """Clock of the description that was last passed to the node."""
        return self._numbers.get("published_clock", 0)

    @property
    def published_ms(self) -> int:
        return self._numbers.get("published_ms", 0)

    def published(self, clock: int, now_ms: int) -> None:
        """Note that the node accepted a description."""
        self._number("published_clock", clock)
        self._number("published_ms", now_ms)
        self._write()

    def remove(self, user: PublicKey, clock: int) -> None:
        """Note that a user was removed and must still get a notice. The next `save` or `published`
        writes the removal."""
        self.removed[user] = clock
        self._recorder.put(_REMOVED, user.hex, clock)

    def told(self, user: PublicKey) -> None:
        """Note that a removed user got the notice. The next `save` or `published` writes that the
        user got the notice."""
        del self.removed[user]
        self._recorder.delete(_REMOVED, user.hex)

    def save(self) -> None:
        """Write all changes to the state file.

        Raises:
            StateError: it cannot be written.
        """
        node = self.node
        for name, description in (("description", node.description), ("newer", node.newer)):
            if description is self._descriptions.get(name):
                continue
            self._descriptions[name] = description
            if description is None:
                self._recorder.delete(_DESCRIPTIONS, name)
            else:
                self._recorder.put(_DESCRIPTIONS, name, encode_payload(description))
        requests = {request.user: request for request in node.requests}
        for user in self._requests.keys() - requests.keys():
            self._recorder.delete(_REQUESTS, user.hex)
        for user, request in requests.items():
            if self._requests.get(user) is not request:
                self._put(request)
        self._requests = requests
        if node.forgotten_s != self._numbers.get("forgotten_s", 0):
            self._number("forgotten_s", node.forgotten_s)
        self._write()

    def close(self) -> None:
        self._store.close()

    def _put(self, request: Request) -> None:
        self._last += 1
        self._recorder.put(
            _REQUESTS,
            request.user.hex,
            request.clock,
            request.state,
            request.display_name,
            int(request.is_answered),
            self._last,
        )

    def _number(self, name: str, value: int) -> None:
        self._numbers[name] = value
        self._recorder.put(_NUMBERS, name, value)

    def _write(self) -> None:
        self._store.write(self._recorder.take())


def _decoded(payload: bytes) -> CommunityDescription | None:
    description = decode_payload(PayloadType.COMMUNITY_DESCRIPTION, payload)
    assert isinstance(description, CommunityDescription)  # the store checks what it wrote
    return description


def _request(row: tuple[Any, ...]) -> Request:
    user, clock, state, display_name, is_answered, _ = row
    return Request(PublicKey.parse(user), clock, state, display_name, bool(is_answered))
