"""Journals of simulated participants, written by the SDK's own `Journal` for audits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from reliable_channel.config import flat
from reliable_channel.engine.logged import Logged
from reliable_channel.engine.sync_core import SyncCore
from reliable_channel.events import AnyEvent
from reliable_channel.options import BloomParameters, ChannelOptions
from reliable_channel.sds.events import Outgoing
from reliable_channel.sds.receiving import Outcome
from reliable_channel.spi import Envelope, Journal, Received, Source

from .sim.network import Packet
from .sim.scenario import Scenario
from .sim.simulation import channel_options
from .sim.world import CHANNEL, JournalKeeper

TOPIC = "/simulated/1/chat/proto"


def journals_in(directory: Path, scenario: Scenario) -> Callable[[str], JournalKeeper]:
    """Return a function that opens the journal of each participant in a simulation, one file each.
    In a real channel, `runtime/runtime.py` writes the same journal entries.

    Raises:
        FileExistsError: there are journals already, which would be continued.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.glob("*.jsonl")):
        raise FileExistsError(f"{directory} has journals already; name an empty directory")
    parameters = scenario.parameters
    options = replace(
        channel_options(scenario.habits),
        bloom=BloomParameters(parameters.bloom_capacity, parameters.bloom_error_rate),
        retrieval_strategy=parameters.retrieval_strategy,
    )
    has_store = scenario.store is not None
    return lambda name: _Keeper(directory / f"{name}.jsonl", name, options, has_store=has_store)


class _Keeper:
    """Of one process; the next one of the participant goes on in the same file."""

    def __init__(self, path: Path, name: str, options: ChannelOptions, *, has_store: bool) -> None:
        self._journal = Journal(path, channel_id=CHANNEL, sender_id=name, content_topic=TOPIC)
        self._options = options
        self._has_store = has_store

    def opened(self, core: SyncCore, wanted_from_ms: int | None, now_ms: int) -> None:
        self._journal.opened(
            at_ms=now_ms,
            wanted_from_ms=wanted_from_ms,
            log_length=len(core.log),
            options=flat(self._options),
            has_store=self._has_store,
        )
        if wanted_from_ms is None:
            self._journal.restored(core.log, now_ms)

    def came(self, arrived: Packet, outcome: Outcome, now_ms: int, *, from_store: bool) -> None:
        source = Source.STORE if from_store else Source.LIVE
        stamp_ns = arrived.timestamp_ms * 1_000_000
        received = Received(arrived.data, arrived.message_hash, stamp_ns, source)
        self._journal.came(arrived.data, received, outcome.value, now_ms)

    def went(self, outgoing: Outgoing, sealed: Packet, now_ms: int) -> None:
        """The own node took a message."""
        stamp_ns = sealed.timestamp_ms * 1_000_000
        envelope = Envelope(sealed.data, stamp_ns, not sealed.is_stored, sealed.message_hash)
        self._journal.went(outgoing.data, envelope, outgoing.kind.value, now_ms)

    def emitted(self, event: AnyEvent | Logged, now_ms: int) -> None:
        if isinstance(event, Logged):
            self._journal.logged(event, now_ms)
        else:
            self._journal.event(event, now_ms)

    def ended(self, now_ms: int | None = None) -> None:
        """The process is over; killed, unless there is a time."""
        if now_ms is not None:
            self._journal.closed(now_ms)
        self._journal.close()
