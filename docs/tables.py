"""Write docs/tables.md and its picture from the tables of the audit (`make docs WHAT=tables`).

What a column means is declared here, once for all tables that have it; its type is that of
`schemas`. It needs Spark, whose types the schemas are made of.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

from pyspark.sql.types import StructType

from reliable_channel_audit import schemas

PAGE = Path(__file__).with_name("tables.md")
PICTURE = Path(__file__).with_name("tables.svg")

LOCAL_MS: Final = "ms since 1970, participant's clock"
SENDER_NS: Final = "ns since 1970, sender's clock"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of `schemas`, and what its rows are."""

    name: str
    row: str
    key: tuple[str, ...]
    """Columns that no two rows share; none where rows may be equal."""
    refers: Mapping[str, str] = field(default_factory=dict)
    """By columns of this table the table that they refer to."""
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Unit and meaning of columns that mean something else here than elsewhere."""

    @property
    def schema(self) -> StructType:
        """Its columns and types."""
        schema: StructType = getattr(schemas, self.name)
        return schema


WHOSE: Final = ("channel_id", "participant_id", "life")
OF_LIFE: Final = {"channel_id, participant_id, life": "LIFE"}
OF_MESSAGE: Final = {**OF_LIFE, "channel_id, message_id": "MESSAGE"}

READ: Final = (
    Table(
        "STORED",
        "a Waku message in a Store: `waku-store`, `waku-archive`, and archives as files",
        ("message_hash",),
        columns={
            "payload": ("bytes", "What was published: an SDS message, perhaps encrypted."),
            "timestamp_ns": (SENDER_NS, "Of the Waku message; its hash covers it."),
            "message_hash": ("32 bytes", "The Waku message hash (14/WAKU2-MESSAGE)."),
        },
    ),
    Table(
        "JOURNAL",
        "a line of a journal: `sds_journal`",
        ("path", "number"),
        {"channel_id, participant_id, life": "LIFE", "message_hash": "STORED"},
        {
            "life": (
                "",
                "Which log of the participant, from 0; null in a stream, which begins anywhere.",
            ),
            "source": (
                "",
                (
                    "How a message came (`live`, `store`), why it went (`content`, `retry`, …), "
                    "or how an acknowledgement is known."
                ),
            ),
            "payload": ("bytes", "An SDS message of `wire_in` and `wire_out`; else the content."),
            "message_ids": (
                "",
                "Of `message_logged` what was declared lost before; else what the line is about.",
            ),
        },
    ),
    Table(
        "SET_ASIDE",
        "lines of a file that could not be read, for one reason",
        ("path", "reason"),
        {"path": "JOURNAL"},
        {"lines": ("lines", "How many; 0 for a file of which nothing is read.")},
    ),
    Table(
        "MESSAGE",
        "an SDS message: the column `message` that `decoded` adds to STORED or JOURNAL",
        ("channel_id", "message_id"),
        columns={
            "content": ("bytes", "What the sender passed to `send`, or a segment of it."),
            "kind": ("", "`content`, `sync` or `ephemeral`."),
            "error": (
                "",
                "Why the bytes are not an SDS message, or do not open; then all else is null.",
            ),
        },
    ),
    Table(
        "PAYLOAD",
        "what an application sent, in one message or several: `payloads`",
        ("channel_id", "sender_id", "payload_hash"),
        {"channel_id, message_ids": "MESSAGE"},
        {
            "lamport_timestamp": ("Lamport time", "Of the last message."),
            "message_ids": ("", "The messages that carry it, in log order."),
            "payload": ("bytes", "As it was passed to `send`; null where it is not whole."),
            "error": ("", "Why it is not whole."),
        },
    ),
    Table(
        "FILTER",
        "the bloom filter of a message: `blooms`",
        ("channel_id", "message_id"),
        {"channel_id, message_id": "MESSAGE"},
        {"error": ("", "Why it cannot be read; its bytes are in `words`.")},
    ),
    Table(
        "SAID",
        "a message as one journal has it, and what it refers to: `sds_said`",
        ("channel_id", "participant_id", "message_id"),
        {"channel_id, message_id": "MESSAGE"},
        {
            "at_ms": (LOCAL_MS, "When it was seen there first."),
            "references": ("", "Message ids of its causal history."),
        },
    ),
    Table(
        "PLACE",
        "a message in the causal DAG of its channel: `dag.parquet`",
        ("channel_id", "message_id"),
        {"channel_id, message_id": "SAID"},
        {
            "at_ms": (LOCAL_MS, "When it was seen first, by any participant."),
            "references": ("messages", "How many it refers to."),
        },
    ),
    Table(
        "STEP",
        "what a journal has of the message of a finding: `sds_steps`",
        ("path", "line", "message_id", "what"),
        {"channel_id, message_id": "FINDING", "path, line": "JOURNAL"},
        {
            "line": ("", "Line of the file, from 1."),
            "what": ("", "What happened, in words; empty for the line of a finding's time."),
        },
    ),
)

FACTS: Final = (
    Table(
        "LIFE",
        "a participant with one log, from its beginning to its end",
        WHOSE,
        columns={
            "path": ("", "The journal in which it begins."),
            "life": ("", "Which log of the participant, from 0: one without state begins another."),
        },
    ),
    Table("DELIVERY", "a message entered a log", (*WHOSE, "message_id"), OF_MESSAGE),
    Table(
        "ACKNOWLEDGEMENT",
        "an own message, and when its acknowledgement was emitted",
        (*WHOSE, "message_id"),
        OF_MESSAGE,
        {
            "source": (
                "",
                "How it is known: `causal_history` or `bloom_filter`; null where it is not.",
            )
        },
    ),
    Table(
        "OUTCOME",
        "a message was emitted as failed or lost",
        (),
        OF_MESSAGE,
    ),
    Table(
        "DISPATCH",
        "a message went out",
        (*WHOSE, "message_hash"),
        {**OF_LIFE, "message_hash": "STORED"},
        {"kind": ("", "`content`, `retry`, `repair`, `sync` or `ephemeral`.")},
    ),
    Table("TRAFFIC", "what went out of one kind, in all", (*WHOSE, "kind"), OF_LIFE),
    Table(
        "REPAIR",
        "a message that was asked for, or sent again for others",
        (*WHOSE, "message_id"),
        OF_MESSAGE,
    ),
    Table(
        "LAG",
        "how long a live message of a sender took; 16 a sender",
        (*WHOSE, "sender_id", "message_hash"),
        {**OF_LIFE, "message_hash": "STORED"},
    ),
    Table(
        "BLOOM",
        "a bloom filter that went out, and what was found in it",
        (*WHOSE, "message_id"),
        OF_MESSAGE,
    ),
    Table(
        "DEED",
        "what a sender did that no honest member does, as a participant saw it",
        (*WHOSE, "sender", "what"),
        OF_MESSAGE,
        {"at_ms": (LOCAL_MS, "The first time.")},
    ),
    Table(
        "FINDING",
        "a promise that was broken",
        (),
        OF_MESSAGE,
        {
            "at_ms": (LOCAL_MS, "Since when."),
            "message_id": ("", "Which message; empty where it is about none."),
        },
    ),
    Table(
        "JUDGED", "what an audit looked at, and what it could not judge", (*WHOSE, "audit"), OF_LIFE
    ),
    Table(
        "HEARD",
        "a sender, as a participant heard it",
        (*WHOSE, "sender_id"),
        OF_LIFE,
        {"messages": ("messages", "Of that sender that came.")},
    ),
    Table(
        "ORPHAN",
        "a reference to a message that the participant does not have in the end",
        (*WHOSE, "message_id"),
        OF_LIFE,
        {
            "message_id": ("", "Of the message that is referred to."),
            "first_segment_id": ("", "Of the message that refers to it."),
        },
    ),
)
TABLES: Final = (*READ, *FACTS)

COLUMNS: Final = {
    "absent": ("ids", "Tested, which the sender did not have: some that came later, some made up."),
    "accepted_ms": (LOCAL_MS, "When the message was accepted by `send`."),
    "acknowledged_ms": (
        LOCAL_MS,
        "When its acknowledgement was emitted; null where that never was.",
    ),
    "at_ms": (LOCAL_MS, "When that happened."),
    "audit": ("", "Which promise: `delivery`, `arrived`, …"),
    "bit_count": ("bits", "Size of the filter."),
    "bloom_filter": ("bytes", "As it came; null unless `decoded(…, blooms=True)`."),
    "bloom_filter_bytes": ("bytes", "Of bloom filters."),
    "branches": ("messages", "Up to here in log order, to which none of them refers."),
    "cases": ("cases", "That were judged."),
    "causal_history": ("", "Ids of the messages that it refers to, in log order."),
    "causal_history_bytes": (
        "bytes",
        "Of references, with the ids and numbers that every message has.",
    ),
    "channel_id": ("", "The channel."),
    "content_bytes": ("bytes", "Of contents."),
    "content_sha256": ("32 bytes", "SHA-256 of the content."),
    "content_topic": ("", "Of the Waku message."),
    "depth": ("messages", "Of the longest chain that ends here; null in a circle or after one."),
    "detail": ("", "What is wrong, in words."),
    "dialect": ("", "`spec` or `nim`."),
    "entries": ("messages", "That entered the log."),
    "error_rate": ("share", "For which the size was chosen, at the filter's capacity."),
    "event": ("", "The event's name in journals."),
    "evicted": ("messages", "That had left the log's memory by then."),
    "false_positives": ("ids", "Of those absent, which the filter has all the same."),
    "first_line": ("", "The first of them, from 1."),
    "first_segment_id": ("", "Of an own message the first one of its payload; null for others'."),
    "had": ("ids", "Tested, which the filter must have."),
    "hash_count": ("", "Hash functions of the filter."),
    "is_failure": ("", "Whether an own message failed; else one of others was declared lost."),
    "is_head": ("", "Whether no message refers to it."),
    "is_new": ("", "Whether fewer bits are set than in the filter before it: it rolled over."),
    "kind": ("", "Why it went out, or which kind of message it is."),
    "lacking": ("ids", "Of those that the filter must have, which it has not."),
    "lamport_timestamp": (
        "Lamport time",
        "Near to ms since 1970; the order of the log, with the id.",
    ),
    "least_ms": ("ms", "From the sender's stamp until it came, each by its own clock."),
    "life": ("", "Which log of the participant, from 0."),
    "line": ("", "Line of the file."),
    "lines": ("lines", "How many."),
    "log_digest": ("", "SHA-256 of the log in the end, in hex: equal for equal logs."),
    "is_whole": ("", "Whether the log has in the end exactly the messages that entered it."),
    "log_position": ("", "Place in the log in the end, from 0."),
    "message_hash": ("32 bytes", "Of the Waku message; null for an own message in the log."),
    "message_id": ("", "The SDS message."),
    "message_ids": ("", "The messages that it is about."),
    "messages": ("messages", "How many."),
    "meta": ("bytes", "The field `meta` of the Waku message; null where it has none."),
    "missing_since_ms": (LOCAL_MS, "Since when others waited for it here; null where none did."),
    "number": ("", "Line of the file, from 1."),
    "opened_ms": (LOCAL_MS, "When it began."),
    "orphaned": ("messages", "Referred to, which no participant has."),
    "outcome": (
        "",
        "What became of a message that came; `restored` or `redelivered` after a restart.",
    ),
    "owed_from_ms": (LOCAL_MS, "From when on messages are owed to the participant."),
    "participant_id": ("", "The participant whose journal it is."),
    "path": ("", "The file."),
    "payload": ("bytes", "The payload."),
    "payload_bytes": ("bytes", "Of the Waku message's payload."),
    "payload_hash": ("32 bytes", "Keccak-256 of the payload; null of one without segments."),
    "place": ("", "Which of the participant's steps of this message, from 0."),
    "position": ("", "Place in the log's memory, from 0, at which the message landed."),
    "pubsub_topic": ("", "Of the Waku message."),
    "rank": ("", "Which steps are kept where there are too many, from 0 (`evidence.Rank`)."),
    "reason": ("", "Why they could not be read."),
    "record": ("", "The line itself where it has more than these columns; of one set aside, why."),
    "references": ("", "Messages that it refers to."),
    "repair_request": ("", "Ids of the messages that its sender asks for."),
    "repair_request_bytes": ("bytes", "Of repair requests."),
    "requests": ("requests", "How often it was asked of others."),
    "responses": ("messages", "How often it was sent again for others."),
    "segments": ("segments", "That are here."),
    "segments_needed": ("segments", "Of which it is made."),
    "sender": ("", "As the message named its sender, quoted."),
    "sender_id": ("", "Sender of the message."),
    "set_bits": ("bits", "That are set."),
    "signature": ("bytes", "Of its sender; null where it has none."),
    "source": ("", "`live` or `store`; null for an own message."),
    "times": ("times", "How often."),
    "timestamp_ns": (SENDER_NS, "Of the Waku message."),
    "total_bytes": ("bytes", "Of the Waku payloads."),
    "until_ms": (LOCAL_MS, "The last that its journal has of it."),
    "what": ("", "What the sender did, in words."),
    "why": ("", "Why some could not be judged; null where all could."),
    "words": ("bytes", "The bits."),
}
"""Unit and meaning of columns, wherever `Table.columns` has nothing else."""


def meaning(table: Table, column: str) -> tuple[str, str]:
    """Unit and meaning of a column of a table.

    Raises:
        KeyError: nothing is declared of it.
    """
    return table.columns.get(column) or COLUMNS[column]


def page() -> str:
    """The text of the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Tables of the audit"
    yield ""
    yield "Written by `make docs WHAT=tables` from `reliable_channel_audit.schemas` and"
    yield "`docs/tables.py`; a test holds the page to them. [The pipeline](pipeline.md) says how to"
    yield "read the tables."
    yield from ("", "![The tables, their keys, and which refers to which](tables.svg)", "")
    yield "Ids are text. A column is null where its meaning does not apply. Times of a participant"
    yield "are by its clock; compare those of two participants only after `clocks` has corrected"
    yield "them."
    yield from ("", "## What is read", "")
    yield "Formats of `spark.read`, and what functions make of them."
    for table in READ:
        yield from _section(table)
    yield from ("", "## Facts", "")
    yield "`sds_facts`: what one participant's journal proves alone. `schemas.FACT` has all of them"
    yield "in one table: `fact` is the name in `schemas.FACTS`. Of the kinds of `schemas.MANY` a"
    yield "row is up to 5,000 facts as an Arrow stream (`many`), and `rows` is their number; of the"
    yield "others a row is a fact, and `rare` has its columns. `audits.table(facts, 'Life')` is the"
    yield "table of one kind. Own messages are there as [SAID](#said)."
    for table in FACTS:
        yield from _section(table)


def _section(table: Table) -> Iterator[str]:
    yield from ("", f"### {table.name}", "", f"`schemas.{table.name}`: a row is {table.row}.", "")
    key = ", ".join(f"`{column}`" for column in table.key) or "none: rows may be equal"
    yield f"Key: {key}."
    for columns, other in table.refers.items():
        names = ", ".join(f"`{column}`" for column in columns.split(", "))
        yield f"{names} → [{other}](#{other.lower()})."
    yield from ("", "| column | type | unit | |", "|---|---|---|---|")
    for column in table.schema:
        unit, text = meaning(table, column.name)
        yield f"| `{column.name}` | {column.dataType.simpleString()} | {unit} | {text} |"


_WIDTH, _BOX, _GAP, _LINE = 980, 166, 24, 14
_AT: Final = {
    "STORED": (20, 30),
    "JOURNAL": (20, 130),
    "SET_ASIDE": (250, 200),
    "MESSAGE": (250, 70),
    "PAYLOAD": (480, 20),
    "FILTER": (480, 110),
    "SAID": (480, 190),
    "PLACE": (710, 190),
    "STEP": (780, 20),
    "LIFE": (20, 330),
}
"""Left and upper edge of boxes; facts of a life follow in a frame."""
_FRAME: Final = (250, 300, 710)
"""Left and upper edge and width of the frame."""
_COLUMNS: Final = 4


def picture() -> str:
    """The picture as SVG: a box a table with its key, an arrow to the table that it refers to."""
    places = dict(_AT)
    left, top, width = _FRAME
    inside = [table for table in FACTS if table.name != "LIFE"]
    step = (width - _GAP) // _COLUMNS
    tall = max(map(_tall, inside)) + _GAP // 2
    for number, table in enumerate(inside):
        row, column = divmod(number, _COLUMNS)
        places[table.name] = (left + 12 + column * step, top + 30 + row * tall)
    rows = -(-len(inside) // _COLUMNS)
    height = top + 40 + rows * tall + 10
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" font-family="sans-serif" font-size="11">'
        ),
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
        ),
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        (
            f'<rect x="{left}" y="{top}" width="{width}" height="{height - top - 10}" rx="10" '
            'fill="#f4f6f8" stroke="#9aa5b1" stroke-dasharray="5 4"/>'
        ),
        (
            f'<text x="{left + 12}" y="{top + 18}" fill="#52606d">facts, each of one LIFE: '
            "channel_id, participant_id, life</text>"
        ),
        _arrow((left, places["LIFE"][1] + 30), (20 + _BOX, places["LIFE"][1] + 30)),
    ]
    tables = {table.name: table for table in TABLES}
    parts += (
        _between(places, table, tables[other])
        for table in READ
        for other in dict.fromkeys(table.refers.values())
        if table.name != "STEP"
    )
    at_x, at_y = places["STEP"][0] + _BOX - 12, places["STEP"][1] + _tall(tables["STEP"])
    parts.append(_arrow((at_x, at_y), (at_x, top)))
    parts.append(f'<text x="{at_x - 6}" y="{top - 8}" text-anchor="end">FINDING</text>')
    parts += (_between(places, tables["MESSAGE"], tables[name]) for name in ("STORED", "JOURNAL"))
    parts += (_box(table, *places[table.name]) for table in TABLES)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _tall(table: Table) -> int:
    return 24 + _LINE * max(1, len(_shown(table)))


def _shown(table: Table) -> tuple[str, ...]:
    """The key, without what every fact has."""
    if table in FACTS and table.key[:3] == WHOSE and table.name != "LIFE":
        return ("life …", *table.key[3:])
    return table.key or ("no key",)


def _box(table: Table, x: int, y: int) -> str:
    texts = "".join(
        f'<text x="{x + 8}" y="{y + 30 + _LINE * number}" fill="#323f4b">{escape(column)}</text>'
        for number, column in enumerate(_shown(table))
    )
    fill = "#d9f2e3" if table in FACTS else "#fff3cd"
    width = _BOX if table.name in _AT else _BOX - 10
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{_tall(table)}" rx="5" fill="{fill}" '
        f'stroke="#323f4b"/><text x="{x + 8}" y="{y + 15}" font-weight="bold">{table.name}</text>'
        + texts
    )


def _between(places: Mapping[str, tuple[int, int]], table: Table, other: Table) -> str:
    """An arrow between the nearest edges of two boxes."""
    (x, y), (to_x, to_y) = places[table.name], places[other.name]
    middle, to_middle = y + _tall(table) // 2, to_y + _tall(other) // 2
    if x > to_x:
        return _arrow((x, middle), (to_x + _BOX, to_middle))
    if x < to_x:
        return _arrow((x + _BOX, middle), (to_x, to_middle))
    if y > to_y:
        return _arrow((x + _BOX // 2, y), (x + _BOX // 2, to_y + _tall(other)))
    return _arrow((x + _BOX // 2, y + _tall(table)), (x + _BOX // 2, to_y))


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x, y), (to_x, to_y) = start, end
    return f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="#444" marker-end="url(#tip)"/>'


if __name__ == "__main__":
    PAGE.write_text(page())
    PICTURE.write_text(picture())
