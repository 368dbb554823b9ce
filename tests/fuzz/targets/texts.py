"""Texts and files: topics and addresses, the rate limit's file, a torn journal, and the commands of
`peer`."""

import atexit
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn, cast
from unittest.mock import patch

from audit_tests.generated import write_group
from reliable_channel import ReliableChannel, Request, SdsError
from reliable_channel._arguments import checked_name
from reliable_channel.cli import peer
from reliable_channel.conversation.conversation import Outcome
from reliable_channel.engine.rate_limit import Spent
from reliable_channel.runtime import BudgetFile
from reliable_channel.runtime.journal import Journal
from reliable_channel.runtime.journal_packing import Packer, Unpacker
from reliable_channel.runtime.runtime import DAMAGE
from reliable_channel.state import SqliteStateStore, StateError
from reliable_channel.transport.addresses import default_content_topic
from reliable_channel_audit.check import check
from reliable_channel_audit.findings import ESSENTIAL
from reliable_channel_audit.journals import lines_of
from reliable_channel_audit.verdict import Value
from tests.state.scripted import Run, begin
from waku.node.identity import BadAddress, check_address, is_peer_id
from waku.topics import ContentTopic

from ..target import JSON_WORDS, Target, joined, records
from .client import at_once, check_topic

MEMORY: Final = Path("/dev/shm")
FOLDER: Final = Path(
    tempfile.mkdtemp(prefix="reliable-channel-fuzz-", dir=MEMORY if MEMORY.exists() else None)
)
"""Holds a file at a time, where possible in memory: a disk takes a hundred times longer."""
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def _topic(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    check_topic(text)
    if text.isprintable():
        check_topic(default_content_topic(text))
        ContentTopic.parse(default_content_topic(text or "general"))


def _address(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    assert is_peer_id(text) in (True, False)
    try:
        peer_id = check_address(text)
    except BadAddress:
        return
    assert peer_id is None or is_peer_id(peer_id)


def _budget(data: bytes) -> None:
    """A file is a budget, or is refused with a text that says which file it is."""
    path = FOLDER / f"budget-{os.getpid()}"
    path.write_bytes(data)
    file = BudgetFile(path)
    try:
        spent = file.load()
    except ValueError as error:
        assert path.name in str(error)
        return
    assert isinstance(spent, Spent)
    assert spent.messages >= 0
    file.save(spent)
    assert file.load() == spent


def _journal(data: bytes) -> None:
    """Whatever a killed process left, what is appended is on lines of its own, and a reader gets
    through to it; a file of something else is left as it is."""
    path = FOLDER / f"journal-{os.getpid()}"
    path.write_bytes(data)
    try:
        journal = Journal(path, channel_id="c", sender_id="s", content_topic="t")
    except ValueError:
        assert path.read_bytes() == data
        return
    with journal:
        journal.opened(at_ms=1, wanted_from_ms=0, log_length=0, options={})
    after = path.read_bytes()
    assert after.startswith(data)
    assert json.loads(after.splitlines()[-1])["event"] == "journal_opened"
    assert after[len(data) :].count(b"\n") in (1, 2)
    *_, (_, last) = lines_of("c", "s", str(path))
    assert (last.event, last.sender_id) == ("journal_opened", "s")


def _journals(data: bytes) -> None:
    """Whatever stands in journals, there is a verdict, and nothing is kept that was not judged."""
    folder = FOLDER / f"journals-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(records(data, most=2)):
        (folder / f"{number}.jsonl").write_bytes(text)
    verdict = check([folder])
    shutil.rmtree(folder)
    json.loads(verdict.to_json())
    if verdict.value is Value.KEPT:
        assert verdict.participants >= 2
        assert all(verdict.judged[audit.value] for audit in ESSENTIAL)


def _small_journals() -> list[bytes]:
    """Two journals of a group that said little, whole and in part."""
    folder = FOLDER / f"honest-{os.getpid()}"
    paths = write_group(folder, participants=2, messages=2, bloom=None)
    texts = [path.read_bytes() for path in paths]
    return [joined(texts), joined(texts[:1]), joined([text[:1_500] for text in texts])]


def _packed(data: bytes) -> None:
    """Bytes of a journal are unpacked or rejected; whatever was packed comes out as it went in."""
    with suppress(ValueError, LookupError):
        Unpacker().unpack(data.decode(errors="replace"))
    packer, unpacker = Packer(), Unpacker()
    for _ in range(2):
        assert unpacker.unpack(packer.pack(data)) == data
        assert unpacker.unpack(packer.pack_value(data)) == data


@cache
def _whole_state() -> bytes:
    """The state that a scripted run leaves behind, in one file."""
    path = FOLDER / f"whole-{os.getpid()}"
    run = Run(path)
    run.script()
    run.overlay.close()
    run.store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path.read_bytes()


def _state(data: bytes) -> None:
    """Every four bytes of the input change one of a state file. It is opened, or refused as
    damaged."""
    changed = bytearray(_whole_state())
    for *place, value in batched(data):
        changed[int.from_bytes(bytes(place)) % len(changed)] = value
    path = FOLDER / f"state-{os.getpid()}"
    path.write_bytes(changed)
    store = SqliteStateStore(path)
    try:
        core, overlay = begin(store)
    except (StateError, *DAMAGE):  # the runtime makes one of the other
        return
    else:
        assert core.agenda.next_ms is not None
        overlay.close()
    finally:
        store.close()
        for file in FOLDER.glob(f"{path.name}*"):
            file.unlink()


def batched(data: bytes, size: int = 4) -> Iterator[bytes]:
    """All whole pieces of that size."""
    for at in range(0, len(data) - size + 1, size):
        yield data[at : at + size]


class _Channel:
    """A channel that takes everything."""

    async def send(self, payload: bytes, *, idempotency_key: str | None) -> Request:
        if idempotency_key is not None:
            checked_name("idempotency_key", idempotency_key)  # as a real channel does
        known: Any = Outcome(is_known=True), None
        return Request("request", (f"message of {len(payload)} bytes",), *known)

    async def send_ephemeral(self, payload: bytes) -> str:
        return f"ephemeral of {len(payload)} bytes"

    def cut_off(self, cut_off: bool) -> None:
        assert isinstance(cut_off, bool)

    def log(self) -> list[object]:
        return []

    def log_digest(self) -> str:
        return ""

    def statistics(self) -> NoReturn:
        raise SdsError("not in this test")


def _command(data: bytes) -> None:
    """A line is obeyed or refused, and either way answered by one line of JSON."""
    line = data.replace(b"\n", b" ")
    told: list[dict[str, Any]] = []
    with patch.object(peer, "write", told.append):
        goes_on = at_once(peer.obey_line(cast("ReliableChannel", _Channel()), line, {}))
    assert len(told) == goes_on
    for answer in told:
        written = json.dumps(answer, allow_nan=False)
        assert json.loads(written) == answer
        assert len(written) <= 600 + 6 * len(line)


def _commands() -> Iterator[bytes]:
    for command in (
        {"op": "send", "ref": 1, "payload": "aGVsbG8="},
        {"op": "send_ephemeral", "ref": "a", "payload": ""},
        {"op": "log", "ref": None},
        {"op": "statistics", "ref": [1]},
        {"op": "cut_off", "value": True},
        {"op": "confirm", "message_id": "m"},
        {"op": "send", "payload": "aGVsbG8=", "idempotency_key": "k"},
        {"op": "stop"},
    ):
        yield json.dumps(command).encode()


TARGETS: Final = (
    Target(
        "topics",
        _topic,
        lambda: [b"/app/1/chat/proto", b"/0/app/1/chat/proto", b"/waku/2/rs/1/7", b"general \xc3"],
    ),
    Target(
        "addresses",
        _address,
        lambda: [
            b"http://[::1]:8645/a",
            b"https://node.example",
            b"/ip4/127.0.0.1/tcp/60000/p2p/16Uiu2HAmHzBkRq62mG95vsjKMuYQBezZCtjPXYWUoyVxMxi71aB3",
            b"/dns4/node.example/tcp/443/http",
            b"16Uiu2HAmHzBkRq62mG95vsjKMuYQBezZCtjPXYWUoyVxMxi71aB3",
        ],
    ),
    Target(
        "budget_file",
        _budget,
        lambda: [b'{"epoch_index": 2833333, "messages": 7}', b"{"],
        JSON_WORDS,
    ),
    Target("journal", _journal, lambda: [b"", b'{"event":"x"}\n', b'{"event":"x"}\n{"eve']),
    Target("journals", _journals, _small_journals, JSON_WORDS),
    Target(
        "packed_journal",
        _packed,
        lambda: [b"=AAEC 1=AAEC", b"2=1^eJxjZGIGAAANAAc= 1-2", b"~1"],
    ),
    Target("state_file", _state, lambda: [b"", b"\0\0\0\0", b"\0\x20\0\xff\1\0\0\xff"]),
    Target("peer_commands", _command, _commands, JSON_WORDS),
)
