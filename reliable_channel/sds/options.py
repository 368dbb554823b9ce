"""The options of the core, declared once for all that shows or checks them.

Defaults are those that js-waku documents, or better ones that say why.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from .bloom import BloomParameters
from .declared import Bound, Doc, Unit, check
from .outgoing import RetryPolicy, fixed

ENVELOPE_BYTES: Final = 1024
"""The fields of a Waku message beside its payload, at most."""
MAX_MESSAGE_BYTES: Final = 150_000 - ENVELOPE_BYTES
"""What a Waku message leaves beside its own fields where it passes every node: nwaku relays
150 KiB, and go-waku 150,000 bytes; it takes what is longer, and drops it without a word."""
DAY_MS: Final = 24 * 60 * 60 * 1000
LOG_WINDOW_ENTRIES: Final = 20_000
"""More than any causal history looks back, or any bloom filter of the default capacity."""
MAX_CAUSAL_HISTORY_SIZE: Final = 1_000
"""Longer than the causal history of any implementation: js-waku 200 by default, nim-sds 10."""
MAX_REQUESTS_PER_MESSAGE: Final = 100
"""More than any implementation requests at once: js-waku and nim-sds request 3."""

SyncScheduleName = Literal["suppressed", "js-waku"]


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """SDS-R, the repair of missing messages by other participants.

    Raises:
        ValueError: a value that is not allowed; the text names it and what is.
    """

    enabled: bool = True
    t_min_ms: Annotated[
        int,
        Bound(0),
        Doc("""Earliest time after a gap was noticed at which other participants are asked for
        the missing message."""),
    ] = 30_000
    t_max_ms: Annotated[
        int,
        Bound(1),
        Doc("""Latest time after a gap was noticed at which other participants are asked; also
        the span over which their answers are spread. 300,000 in `nim`."""),
    ] = 120_000
    num_response_groups: Annotated[
        int,
        Bound(1),
        Doc("""Groups of participants of which one answers a repair request. SDS-R advises
        `max(1, participants / 128)`. Must be equal for all participants."""),
    ] = 1
    max_requests_per_message: Annotated[
        int,
        Bound(1, MAX_REQUESTS_PER_MESSAGE),
        Unit("requests"),
        Doc("Missing messages that one message asks for."),
    ] = 3
    buffer_size: Annotated[
        int,
        Bound(1),
        Unit("entries"),
        Doc("""Maximum number of repair requests, and of answers, that are planned. The one
        that is due last is evicted."""),
    ] = 1_000
    # DIVERGES: js-waku asks once, whether or not anybody heard it.
    max_request_attempts: Annotated[
        int,
        Bound(1),
        Doc("""How often a missing message is asked for, before a rest as long as it has been
        missing; a new reference then starts over."""),
    ] = 5
    sweep_interval_ms: Annotated[
        int,
        Bound(0),
        Doc("Minimum interval between sync messages that are sent for repair requests alone."),
    ] = 5_000
    cache_bytes: Annotated[
        int,
        Bound(0),
        Doc("""Size of the cache of whole messages from which repair requests are answered; the
        oldest are evicted. Give more if there is no Store."""),
    ] = 4 * 1024 * 1024
    cache_durably: bool = False
    """Whether messages of others in the cache outlive a restart as own ones do: of use without a
    Store, at the cost of writing each message whole."""
    answers_per_minute: Annotated[
        int,
        Bound(1),
        Unit("messages per minute"),
        Doc("""Maximum number of messages a minute that are broadcast again for others.
        Requests beyond it are not answered."""),
    ] = 1_200
    answer_bytes_per_minute: Annotated[
        int,
        Bound(1),
        Unit("bytes per minute"),
        Doc("Maximum number of bytes a minute that are broadcast again for others."),
    ] = 16 * 1024 * 1024
    requester_answers_per_minute: Annotated[
        int,
        Bound(1),
        Unit("messages per minute"),
        Doc("Maximum number of messages a minute that are broadcast again for one participant."),
    ] = 300
    requester_answer_bytes_per_minute: Annotated[
        int,
        Bound(1),
        Unit("bytes per minute"),
        Doc("Maximum number of bytes a minute that are broadcast again for one participant."),
    ] = 4 * 1024 * 1024
    repair_on_demand: bool = False
    """Whether repair requests wait until `SdsProtocol.ask_participants` is called; else a missing
    message is requested as soon as it is referred to."""

    def __post_init__(self) -> None:
        check(self)
        check_order("t_min_ms", self.t_min_ms, "t_max_ms", self.t_max_ms)


@dataclass(frozen=True, slots=True)
class CoreLimits:
    """Limits of each buffer of the core. Reaching one is an event or an error, never silence.

    Raises:
        ValueError: a value that is not allowed; the text names it and what is.
    """

    log_entries: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""Maximum number of messages in the log. The oldest are evicted, some thousands at
        a time with `state`; older messages are then refused."""),
    ] = 1_000_000
    log_bytes: Annotated[int, Bound(1), Doc("Maximum number of bytes of content in the log.")] = (
        1024 * 1024 * 1024
    )
    retention_ms: Annotated[
        int,
        Bound(0),
        Doc(
            "Age, by Lamport timestamp, at which a message is evicted from the log; 0 for any age."
        ),
    ] = 0
    log_window_entries: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("Newest entries of an archived log that stay in memory."),
    ] = LOG_WINDOW_ENTRIES
    outgoing_messages: Annotated[
        int,
        Bound(1),
        Doc("Maximum number of own messages that are not acknowledged; `send` refuses more."),
    ] = 10_000
    incoming_messages: Annotated[
        int,
        Bound(1),
        Doc("""Maximum number of received messages that wait for missing ones. Of the sender
        with most, the message that has waited longest is refused, and may come again."""),
    ] = 10_000
    incoming_bytes: Annotated[
        int,
        Bound(1),
        Doc("""Maximum number of bytes, references included, of received messages that wait for
        missing ones."""),
    ] = 64 * 1024 * 1024
    missing_entries: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""Maximum number of messages that we know exist but have not received. References
        of the participant that has most are dropped, with `references_dropped`."""),
    ] = 20_000
    participants: Annotated[
        int,
        Bound(1),
        Unit("participants"),
        Doc("""Maximum number of senders that are remembered; the one not heard for longest is
        evicted."""),
    ] = 20_000
    unknown_references: Annotated[
        int,
        Bound(1),
        Doc("Unknown messages that one message may refer to; a message with more is refused."),
    ] = MAX_CAUSAL_HISTORY_SIZE
    repair_requests: Annotated[
        int, Bound(1), Doc("Messages that one message may ask for; a message with more is refused.")
    ] = MAX_REQUESTS_PER_MESSAGE

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Choices in which js-waku leaves the specification, or takes from it what harms; ours are the
    defaults.

    `JS_WAKU` is the other end: what a comparison with recordings of js-waku sets.
    """

    deliver: Literal["at_once", "on_sweep"] = "at_once"
    """When a message whose last dependency arrived is delivered."""
    log_own_message: Literal["on_send", "on_dispatch"] = "on_send"
    """When an own message enters log and bloom filter. On dispatch, two messages sent while the
    transport is down do not know of each other, and their order is lost."""
    sync_without_history: bool = True
    """Whether a participant with an empty log sends sync messages: a newcomer that does not cannot
    be noticed."""
    adopt_own_messages: bool = True
    """Whether an own message that is not in the log is taken as anybody's."""
    threshold_fits_group: bool = True
    """Whether `possible_acks_threshold` is lowered to the number of other participants heard."""
    compare_logs: bool = True
    """Whether sync messages carry the root of the log, where the dialect has a field for it."""


JS_WAKU: Final = Behaviour(
    deliver="on_sweep",
    log_own_message="on_dispatch",
    sync_without_history=False,
    adopt_own_messages=False,
    threshold_fits_group=False,
    compare_logs=False,
)


@dataclass(frozen=True, slots=True)
class SdsOptions:
    """How one participant of one channel behaves.

    Raises:
        ValueError: a value that is not allowed; the text names it and what is.
    """

    causal_history_size: Annotated[
        int,
        Bound(0, MAX_CAUSAL_HISTORY_SIZE),
        Unit("references"),
        Doc("""Earlier messages that each message refers to; 10 in `nim`. With few (LIP 173 has
        2) only a Store can recover all."""),
    ] = 200
    possible_acks_threshold: Annotated[
        int,
        Bound(1),
        Unit("participants"),
        Doc(
            "Participants whose bloom filter must hold a message before it counts as acknowledged."
        ),
    ] = 2
    bloom: BloomParameters = field(default_factory=BloomParameters)
    retry_interval_ms: Annotated[
        int, Bound(1), Doc("Wait before an unacknowledged message is sent again.")
    ] = 30_000
    possibly_acknowledged_retry_interval_ms: Annotated[
        int | None,
        Bound(1),
        Doc("Wait before a message is sent again that some participant may have."),
    ] = None
    """Twice `retry_interval_ms` where None."""
    max_retry_attempts: Annotated[
        int, Bound(0), Doc("Retries of a message before `delivery_failed`.")
    ] = 10
    retry_policy: RetryPolicy = fixed
    """Makes of these intervals when a message goes again."""
    sync_min_interval_ms: Annotated[
        int,
        Bound(0),
        Doc("""Interval in which the whole channel, not each participant, sends about one sync
        message; 0 sends none, the default of `nim`, as nim-sds takes them for content."""),
    ] = 30_000
    sync_schedule: Annotated[
        SyncScheduleName,
        Doc("""Schedule of sync messages: `suppressed` sends about one an interval in a group
        of any size, `js-waku` one for each participant."""),
    ] = "suppressed"
    sweep_in_buf_interval_ms: Annotated[
        int, Bound(1), Doc("Interval at which messages that wait for missing ones are reviewed.")
    ] = 5_000
    # DIVERGES: js-waku waits for ever by default, and a lost message then blocks the channel.
    timeout_for_lost_messages_ms: Annotated[
        int,
        Bound(0),
        Doc("""Wait before a missing message counts as lost. With 0, as js-waku has it, there
        is no timeout, and one lost message blocks the channel."""),
    ] = 300_000
    max_message_bytes: Annotated[
        int, Bound(1), Doc("Maximum size of an encoded message; by default what every node relays.")
    ] = MAX_MESSAGE_BYTES
    self_tuning: Annotated[
        bool,
        Doc("""Whether the core adapts to what it hears: copies ahead of requests, and times
        from measured latency, loss and group size in place of `retry_interval_ms`,
        `repair.t_min_ms` and `repair.t_max_ms`, which become upper bounds."""),
    ] = False
    max_lamport_ahead_ms: Annotated[
        int,
        Bound(0),
        Doc("""How far ahead of local time the Lamport timestamp of a message may be; 365 days
        in `nim`, whose clocks run ahead by a second with each message beyond one a second."""),
    ] = DAY_MS
    repair: RepairOptions = field(default_factory=RepairOptions)
    limits: CoreLimits = field(default_factory=CoreLimits)
    behaviour: Behaviour = field(default_factory=Behaviour)

    def __post_init__(self) -> None:
        check(self)

    @property
    def possibly_acknowledged_interval_ms(self) -> int:
        """The retry interval of possibly acknowledged messages, its default resolved."""
        return self.possibly_acknowledged_retry_interval_ms or 2 * self.retry_interval_ms


def check_order(min_name: str, least: int, name: str, value: int) -> None:
    """Check two options of which one must not be below the other.

    Raises:
        ValueError: it is.
    """
    if value < least:
        raise ValueError(f"`{name}` must be at least `{min_name}`, {least} (got {value})")
