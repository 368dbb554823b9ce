from reliable_channel.sds.causal_history import CausalTail, history_entry
from reliable_channel.sds.log import MessageLog
from reliable_channel.sds.log_entry import LogEntry
from reliable_channel.sds.message import HistoryEntry


class Recorder:
    """An encoder that remembers what it was asked to encode."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def __call__(self, entry: HistoryEntry) -> bytes:
        self.encoded.append(entry.message_id)
        hint = entry.retrieval_hint or b"-"
        return entry.message_id.encode() + b":" + hint + b";"


def tail(
    size: int, count: int, limit_bytes: int = 1_000
) -> tuple[CausalTail, MessageLog, Recorder]:
    log, encode = MessageLog(1_000), Recorder()
    for i in range(count):
        log.insert(LogEntry(f"m{i:02}", "s", i, b""))
    return CausalTail(log, size, limit_bytes, encode), log, encode


def test_the_newest_entries_oldest_first() -> None:
    assert tail(2, 4)[0].encoded() == b"m02:-;m03:-;"
    assert tail(9, 2)[0].encoded() == b"m00:-;m01:-;"
    assert tail(2, 0)[0].encoded() == b""


def test_size_zero_is_none() -> None:
    assert tail(0, 4)[0].encoded() == b""


def test_each_entry_is_encoded_once() -> None:
    causal, log, encode = tail(3, 3)
    for i in range(50):
        causal.encoded()
        log.insert(LogEntry(f"n{i:02}", "s", 100 + i, b""))
    assert len(encode.encoded) == len(set(encode.encoded))


def test_a_late_insertion_takes_its_place() -> None:
    causal, log, _ = tail(3, 3)
    causal.encoded()
    log.insert(LogEntry("late", "s", 1, b""))
    assert causal.encoded() == b"late:-;m01:-;m02:-;"


def test_a_hint_that_becomes_known_is_encoded() -> None:
    causal, log, _ = tail(1, 1)
    causal.encoded()
    entry = log.entries["m00"]
    entry.retrieval_hint = b"hint"
    causal.forget("m00")
    causal.forget("unknown")
    assert causal.encoded() == b"m00:hint;"


def test_beyond_the_limit_of_bytes_the_oldest_are_left_out() -> None:
    # An entry takes 6 bytes.
    assert tail(5, 5, limit_bytes=12)[0].encoded() == b"m03:-;m04:-;"
    assert tail(5, 5, limit_bytes=11)[0].encoded() == b"m04:-;"
    assert tail(5, 5, limit_bytes=0)[0].encoded() == b""


def test_a_reference_names_the_sender() -> None:
    assert history_entry(LogEntry("m", "s", 1, b"", b"h")) == HistoryEntry("m", b"h", "s")
