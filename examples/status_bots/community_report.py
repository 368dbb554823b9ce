"""What happened in a community, for its moderators: floods, deletions, edits, members, channels.

    python community_report.py http://127.0.0.1:8645 COMMUNITY --hours 24
    python community_report.py archive/ COMMUNITY --tables tables/

It reads a node's Store, the SQLite or PostgreSQL database of one, or the Parquet files that
`reliable-channel audit archive` wrote, with the keys that every member has. --tables also writes
each table as JSON lines. docs/status-communities.md lists the columns.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from reliable_channel._terminal_text import printable
from reliable_channel_audit.databases import Selection, database
from reliable_channel_status import Community
from reliable_channel_status.community.history import CommunityHistory
from reliable_channel_status.community.history_tables import AuthorRate, CommunityTables, Post
from waku import StoreQuery, WakuClient, WakuMessage

MOST = 20
"""Lines of a section; the rest is counted."""
WIDTH = 60
"""Characters of a text that are shown."""
NS = 1_000_000_000


def stored(source: str, topics: Sequence[str], start_ns: int = 0) -> Iterator[WakuMessage]:
    """Stored messages of some content topics in order of time."""
    if source.startswith(("http://", "https://")):
        yield from asyncio.run(_of_node(source, topics, start_ns))
        return
    if Path(source).is_dir():
        from reliable_channel_audit.archiving import read_archive  # it needs pyarrow

        table = read_archive(Path(source), "parquet").sort_by("timestamp_ns")
        for batch in table.to_batches(max_chunksize=1_000):
            for row in batch.to_pylist():
                if row["content_topic"] in topics and row["timestamp_ns"] >= start_ns:
                    yield WakuMessage(
                        row["payload"], row["content_topic"], timestamp=row["timestamp_ns"]
                    )
        return
    for rows in database(source).rows(Selection(tuple(topics), start_ns=start_ns)):
        for _, _, content_topic, timestamp_ns, payload, _ in rows:
            yield WakuMessage(payload, content_topic, timestamp=timestamp_ns)


async def _of_node(node: str, topics: Sequence[str], start_ns: int) -> list[WakuMessage]:
    query = StoreQuery(content_topics=tuple(topics), start_time_ns=start_ns or None)
    async with WakuClient(node) as client:
        found = [entry.message async for entry in client.store_all(query)]
    messages = [message for message in found if message is not None]
    return sorted(messages, key=lambda message: message.timestamp)


class Names(NamedTuple):
    """How a report calls authors and channels."""

    authors: dict[str, str]
    channels: dict[str, str]

    @classmethod
    def of(cls, found: CommunityTables) -> "Names":
        """Authors by what they call themselves and the end of their key: names may be copied."""
        authors = {each.author: f"{each.name} …{each.author[-6:]}".lstrip() for each in found.rates}
        return cls(authors, found.channel_names)

    def author(self, key: str | None) -> str:
        """The name of a public key."""
        return printable(self.authors.get(key or "", f"…{(key or '')[-6:]}"))

    def channel(self, chat_id: str) -> str:
        """The name of a channel, or the beginning of its uuid."""
        return "#" + printable(self.channels.get(chat_id) or chat_id[-36:-28])


def report(found: CommunityTables) -> Iterator[str]:
    """The lines of the report."""
    names = Names.of(found)
    authors = {post.author for post in found.posts}
    yield f"{_many(len(found.posts), 'message')} of {_many(len(authors), 'author')}"
    yield from _section(
        "Floods",
        (
            f"{_when(each.begin_ms)}  {names.author(each.author)}: {each.messages} messages in "
            f"{max(1, (each.end_ms - each.begin_ms) // 1000)} s in "
            + ", ".join(map(names.channel, each.chat_ids))
            for each in found.floods
        ),
    )
    yield from _section(
        "Deleted", (_deleted(post, names) for post in found.posts if post.deleted_by)
    )
    yield from _section(
        "Edited",
        (
            f"{_where(post, names)}: {_text(post.first_text)} → {_text(post.text)}"
            for post in found.posts
            if post.edits and not post.deleted_by
        ),
    )
    yield from _section(
        "Members",
        (f"{_when(each.at_ms)}  {names.author(each.member)} {each.what}" for each in found.members),
    )
    yield from _section(
        "Changes that were not applied",
        (
            f"{_when(each.at_ms)}  {names.author(each.signer)}, {names.channel(each.chat_id)}: "
            f"{each.what}: {printable(each.refused)}"
            for each in found.changes
            if each.refused
        ),
    )
    yield from _section("Pinned", (_said(post, names) for post in found.posts if post.is_pinned))
    for chat_id in sorted({*found.channel_names, *(each.chat_id for each in found.rates)}):
        of_channel = (each for each in found.rates if each.chat_id == chat_id)
        yield from _section(names.channel(chat_id), _authors(of_channel, names))
    if found.refused:
        counts = ", ".join(f"{count} {reason}" for reason, count in found.refused.items())
        yield from ("", f"Not counted above: {counts.replace('_', ' ')}")


def _authors(rates: Iterable[AuthorRate], names: Names) -> Iterator[str]:
    for each in rates:
        notes = {
            "repeated": each.repeated,
            "with links": each.with_links,
            "deleted by others": each.deleted_by_others,
            "dropped by clients": each.refused,
        }
        shown = "".join(f", {count} {what}" for what, count in notes.items() if count)
        pace = f", up to {each.most_in_a_minute} a minute"
        yield f"{names.author(each.author)}: {_many(each.messages, 'message')}{pace}{shown}"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    every = list(lines)
    yield from ("", f"{title}: {len(every) or 'none'}")
    yield from (f"  {line}" for line in every[:MOST])
    if len(every) > MOST:
        yield f"  … and {len(every) - MOST} more"


def _deleted(post: Post, names: Names) -> str:
    by = "the author" if post.deleted_by == post.author else names.author(post.deleted_by)
    return f"{_said(post, names)} (by {by}, {_when(post.deleted_ms or 0)})"


def _said(post: Post, names: Names) -> str:
    return f"{_where(post, names)}: {_text(post.text)}"


def _where(post: Post, names: Names) -> str:
    author, channel = names.author(post.author), names.channel(post.chat_id)
    return f"{_when(post.sent_ms)}  {author}, {channel}"


def _text(text: str) -> str:
    shown = printable(text[: WIDTH + 1])
    return f"“{shown if len(shown) <= WIDTH else shown[:WIDTH] + '…'}”"


def _when(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def write(found: CommunityTables, folder: Path) -> None:
    """Each table as JSON lines, as Spark, DuckDB and pandas read them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in found._asdict().items():
        if isinstance(rows, list):
            lines = (json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows)
            (folder / f"{name}.jsonl").write_text("".join(lines))


def history_of(
    source: str, community: str, channels: Sequence[str], start_ns: int = 0
) -> CommunityTables:
    """The tables of a community."""
    history = CommunityHistory(Community.parse(community), channels=channels)
    for message in stored(source, history.content_topics, start_ns):
        history.add(message)
    return history.tables()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("source", help="A node, a database, or a directory of Parquet files.")
    parser.add_argument("community", help="Its id, or an invite link.")
    parser.add_argument(
        "--channel", action="append", default=[], help="A uuid: clients before 2.40."
    )
    parser.add_argument("--hours", type=float, help="Only the last ones.")
    parser.add_argument("--tables", type=Path, help="Write the tables here.")
    given = parser.parse_args()
    start_ns = 0 if given.hours is None else time.time_ns() - int(given.hours * 3600 * NS)
    found = history_of(given.source, given.community, given.channel, start_ns)
    if given.tables is not None:
        write(found, given.tables)
    print("\n".join(report(found)))


if __name__ == "__main__":
    main()
