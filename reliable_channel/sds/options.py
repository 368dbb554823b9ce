"""Options of the core, each declared once.

Defaults are those that js-waku documents, or better ones with a reason.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from .bloom import BloomParameters
from .declared import Bound, Doc, Unit, check
from .outgoing import RetryPolicy, fixed

ENVELOPE_BYTES: Final = 1024
"""Maximum size of the fields of a Waku message besides its payload."""
MAX_MESSAGE_BYTES: Final = 150_000 - ENVELOPE_BYTES
"""Size of a Waku message that passes every node, without its own fields. nwaku relays 150 KiB.
go-waku relays 150,000 bytes and drops longer messages silently."""
DAY_MS: Final = 24 * 60 * 60 * 1000
LOG_WINDOW_ENTRIES: Final = 20_000
"""Maximum log size: more than any causal history or bloom filter of the default capacity covers."""
MAX_CAUSAL_HISTORY_SIZE: Final = 1_000
"""Maximum number of references: more than the causal history of any implementation has (js-waku 200
by default, nim-sds 10)."""
MAX_REQUESTS_PER_MESSAGE: Final = 100
"""Maximum number of requests: more than any implementation sends at once (js-waku and nim-sds
3)."""

SyncScheduleName = Literal["suppressed", "js-waku"]


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """SDS-R, the repair of missing messages by other participants.

    Raises:
        ValueError: a value is not allowed.
    """

    enabled: bool = True
    t_min_ms: Annotated[
        int,
        Bound(0),
        Doc("""Earliest time of a repair request after a gap was noticed."""),
    ] = 30_000
    t_max_ms: Annotated[
        int,
        Bound(1),
        Doc("""Latest time of a repair request after a gap was noticed. Also the time over which
        answers are spread. 300,000 in `nim`."""),
    ] = 120_000
    num_response_groups: Annotated[
        int,
        Bound(1),
        Doc("""Groups of participants, of which one answers a repair request. SDS-R advises
        `max(1, participants / 128)`. Must be equal for all participants."""),
    ] = 1
    max_requests_per_message: Annotated[
        int,
        Bound(1, MAX_REQUESTS_PER_MESSAGE),
        Unit("requests"),
        Doc("Maximum number of repair requests in one message."),
    ] = 3
    buffer_size: Annotated[
        int,
        Bound(1),
        Unit("entries"),
        Doc("""Maximum number of planned repair requests, and of planned answers. The entry due last
        is evicted."""),
    ] = 1_000
    # DIVERGES: js-waku asks once, whether or not anybody heard it.
    max_request_attempts: Annotated[
        int,
        Bound(1),
        Doc("""Number of requests for a missing message before a pause. The pause is as long as the
        message has been missing. A new reference starts over."""),
    ] = 5
    sweep_interval_ms: Annotated[
        int,
        Bound(0),
        Doc("Minimum interval between sync messages that only carry repair requests."),
    ] = 5_000
    cache_bytes: Annotated[
        int,
        Bound(0),
        Doc("""Size of the cache of whole messages that answers repair requests. The oldest are
        evicted. Raise it if there is no Store."""),
    ] = 4 * 1024 * 1024
    cache_durably: bool = False
    """True if cached messages of others survive a restart. Useful without a Store. Each message is
    then written whole."""
    answers_per_minute: Annotated[
        int,
        Bound(1),
        Unit("messages per minute"),
        Doc("""Maximum number of messages a minute that are broadcast again for all participants.
        Further requests are not answered."""),
    ] = 1_200
    answer_bytes_per_minute: Annotated[
        int,
        Bound(1),
        Unit("bytes per minute"),
        Doc("Maximum number of bytes a minute that are broadcast again for all participants."),
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
    """True if repair requests wait for `SdsProtocol.ask_participants`. Otherwise the first
    reference requests a missing message."""

    def __post_init__(self) -> None:
        check(self)
        check_order("t_min_ms", self.t_min_ms, "t_max_ms", self.t_max_ms)


@dataclass(frozen=True, slots=True)
class CoreLimits:
    """Limits of the buffers of the core. Reaching a limit emits an event or raises an error.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    log_entries: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""Maximum number of messages in the log. The oldest are evicted, some thousands at a
        time with `state`. Even older messages are rejected."""),
    ] = 1_000_000
    log_bytes: Annotated[int, Bound(1), Doc("Maximum number of bytes of content in the log.")] = (
        1024 * 1024 * 1024
    )
    retention_ms: Annotated[
        int,
        Bound(0),
        Doc("Age by Lamport timestamp at which a message is evicted from the log (0: never)."),
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
        Doc("Maximum number of unacknowledged own messages. `send` refuses more."),
    ] = 10_000
    incoming_messages: Annotated[
        int,
        Bound(1),
        Doc("""Maximum number of parked messages. The sender with the most loses its oldest one,
        which may come again."""),
    ] = 10_000
    incoming_bytes: Annotated[
        int,
        Bound(1),
        Doc("""Maximum number of bytes of parked messages, references included."""),
    ] = 64 * 1024 * 1024
    missing_entries: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""Maximum number of missing messages. The participant with the most loses its
        references (`references_dropped`)."""),
    ] = 20_000
    participants: Annotated[
        int,
        Bound(1),
        Unit("participants"),
        Doc("""Maximum number of remembered senders. The sender that was silent for the longest time
        is evicted."""),
    ] = 20_000
    unknown_references: Annotated[
        int,
        Bound(1),
        Doc("""Maximum number of unknown references in one message. A message with more is
        rejected."""),
    ] = MAX_CAUSAL_HISTORY_SIZE
    repair_requests: Annotated[
        int,
        Bound(1),
        Doc("""Maximum number of repair requests in a received message. A message
        with more is rejected."""),
    ] = MAX_REQUESTS_PER_MESSAGE

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Choices in which js-waku differs from the specification, or follows it to harm.

    `JS_WAKU` sets all of them, for comparisons with recordings of js-waku.
    """

    deliver: Literal["at_once", "on_sweep"] = "at_once"
    """Time at which a message is delivered after its last dependency arrived."""
    log_own_message: Literal["on_send", "on_dispatch"] = "on_send"
    """Time at which an own message enters log and bloom filter. With `on_dispatch`, messages sent
    while the transport is down have no order."""
    sync_without_history: bool = True
    """True if a participant with an empty log sends sync messages, so that a newcomer is
    noticed."""
    adopt_own_messages: bool = True
    """True if an own message that is not in the log counts as another participant's."""
    threshold_fits_group: bool = True
    """True if `possible_acks_threshold` is lowered to the number of other participants heard."""
    compare_logs: bool = True
    """True if sync messages carry the root hash of the log. The dialect needs a field for it."""


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
    """Options of one participant in one channel.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    causal_history_size: Annotated[
        int,
        Bound(0, MAX_CAUSAL_HISTORY_SIZE),
        Unit("references"),
        Doc("""Earlier messages that each message refers to (10 in `nim`). With few references (2 in
        LIP 173), only a Store can recover all messages."""),
    ] = 200
    possible_acks_threshold: Annotated[
        int,
        Bound(1),
        Unit("participants"),
        Doc("Participants with a message in their bloom filter before it counts as acknowledged."),
    ] = 2
    bloom: BloomParameters = field(default_factory=BloomParameters)
    retry_interval_ms: Annotated[
        int, Bound(1), Doc("Wait before an unacknowledged message is sent again.")
    ] = 30_000
    possibly_acknowledged_retry_interval_ms: Annotated[
        int | None,
        Bound(1),
        Doc("Wait before a possibly acknowledged message is sent again."),
    ] = None
    """Retry interval of possibly acknowledged messages. Default: twice the `retry_interval_ms` of
    the channel."""
    max_retry_attempts: Annotated[
        int, Bound(0), Doc("Retries of a message before `delivery_failed`.")
    ] = 10
    retry_policy: RetryPolicy = fixed
    """Function that returns the time of the next retry from these intervals."""
    sync_min_interval_ms: Annotated[
        int,
        Bound(0),
        Doc("""Interval in which the whole channel sends about one sync message. A participant that
        gets no reply sends one in up to 8 intervals. 0 sends none. That is the default of `nim`,
        because nim-sds treats sync messages as content."""),
    ] = 30_000
    sync_schedule: Annotated[
        SyncScheduleName,
        Doc("""Schedule of sync messages: `suppressed` sends about one an interval in a group
        of any size, `js-waku` one for each participant."""),
    ] = "suppressed"
    sweep_in_buf_interval_ms: Annotated[
        int, Bound(1), Doc("Polling interval for parked messages.")
    ] = 5_000
    # DIVERGES: js-waku waits for ever by default, and a lost message then blocks the channel.
    timeout_for_lost_messages_ms: Annotated[
        int,
        Bound(0),
        Doc("""Wait before a missing message counts as lost. With 0, the default of js-waku, there
        is no timeout, and one lost message blocks the channel."""),
    ] = 300_000
    max_message_bytes: Annotated[
        int,
        Bound(1),
        Doc("""Maximum size of an encoded message. Default: the size that every node relays. A
        message that was accepted under a larger value is still sent after a restart."""),
    ] = MAX_MESSAGE_BYTES
    self_tuning: Annotated[
        bool,
        Doc("""True if the core adapts to measured latency, loss and group size. It sends extra
        copies, and `retry_interval_ms`, `repair.t_min_ms` and `repair.t_max_ms` become upper
        bounds."""),
    ] = False
    max_lamport_ahead_ms: Annotated[
        int,
        Bound(0),
        Doc("""Maximum lead of a Lamport timestamp over local time. 365 days in `nim`, where
        each message advances the clock by at least a second."""),
    ] = DAY_MS
    repair: RepairOptions = field(default_factory=RepairOptions)
    limits: CoreLimits = field(default_factory=CoreLimits)
    behaviour: Behaviour = field(default_factory=Behaviour)

    def __post_init__(self) -> None:
        check(self)

    @property
    def possibly_acknowledged_interval_ms(self) -> int:
        """Retry interval of possibly acknowledged messages, given or by default."""
        return self.possibly_acknowledged_retry_interval_ms or 2 * self.retry_interval_ms


def check_order(min_name: str, least: int, name: str, value: int) -> None:
    """Check two options of which one must not be below the other.

    Raises:
        ValueError: it is.
    """
    if value < least:
        raise ValueError(f"`{name}` must be at least `{min_name}`, {least} (got {value})")
