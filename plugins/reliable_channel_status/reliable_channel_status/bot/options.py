"""How a bot behaves, with defaults that suit one of a community."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from reliable_channel.sds.declared import Bound, Doc, Unit, check
from waku import PubsubTopic

from ..chats import Derivation
from ..pipeline import WakuVersion, checked_version
from ..topics import DEFAULT_SHARD, NON_PROTECTED_SHARD
from .limits import RateLimit
from .loops import LoopLimits
from .texts import ENGLISH, BotTexts

Reliability: TypeAlias = Literal["plain", "sds"]
DirectEncryption: TypeAlias = Literal["dh", "ratchet"]

FOR_USERS: Final = RateLimit(10, 10_000)
"""A command a second, without end."""
FOR_CHANNELS: Final = RateLimit(20, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotOptions:
    """Options of a bot.

    Raises:
        ValueError: a value that is not allowed; the text names it and what is.
    """

    prefix: str = "!"
    """What commands begin with; a mention of the bot does as well."""
    display_name: str = ""
    """What the bot calls itself."""
    reliability: Annotated[
        Reliability,
        Doc("""How the bot speaks in communities: `sds`, inside an SDS channel a community, or
        `plain`, for clients that cannot read that yet. It reads both, and public chats are
        always plain."""),
    ] = "plain"
    journals: str | Path | None = None
    """With SDS, a folder for the journal of each community's channel: `reliable-channel audit`
    judges by it what became of all messages."""
    derivation: Derivation = "universal"
    """On which topic the bot writes into channels; it listens to both."""
    shard: PubsubTopic = DEFAULT_SHARD
    """The shard where the bot writes and listens: 32, like all Status clients."""
    also_listen: tuple[PubsubTopic, ...] = (NON_PROTECTED_SHARD,)
    """Further shards to listen to: clients before 2.40 write requests to join on 64."""
    waku_version: WakuVersion = 1
    """The `version` of the Waku messages that the bot sends. All clients read 1; 0 is what clients
    from 2.40 on send, and those before 2.38 drop it. The bot reads both."""
    request_membership: Annotated[
        bool,
        Doc("""Whether the bot asks to be let into a community whose description does not list
        it: clients drop what others than members write."""),
    ] = True
    needs_membership: Annotated[
        bool,
        Doc("""Whether `run` ends with `NotAMember` (exit status 1) once a community has
        rejected or kicked the bot, or cannot take it. Otherwise the bot goes on."""),
    ] = False
    history_ms: Annotated[
        int,
        Bound(1),
        Doc("""How far back Store is asked at the start, so that edits, answers and pins of
        older messages are understood. What was said before the bot's first start is not
        answered."""),
    ] = 86_400_000
    user_limit: RateLimit = FOR_USERS
    """Of commands and mentions, for each user in all chats together."""
    channel_limit: RateLimit = FOR_CHANNELS
    """The same for each channel."""
    loops: LoopLimits = field(default_factory=LoopLimits)
    """When the bot stops answering a user that answers it without end."""
    texts: BotTexts = ENGLISH
    """What the bot says of itself to users, such as how a command is used."""
    language: str = "en"
    """The name of the language of `texts`, for users that chose none."""
    languages: Mapping[str, BotTexts] = field(default_factory=dict)
    """The texts in further languages, by name, such as `de`. With one or more, users choose with
    `!language`."""
    handler_timeout_ms: Annotated[int, Bound(1)] = 30_000
    handlers_at_once: Annotated[int, Bound(1), Unit("handlers")] = 32
    direct_encryption: Annotated[
        DirectEncryption,
        Doc("""How direct messages are encrypted. `dh`: by one Diffie-Hellman, without forward
        secrecy. `ratchet`: by X3DH and a double ratchet for users whose bundle is known; the
        bot publishes its bundle with each direct message."""),
    ] = "dh"
    confirm_ms: Annotated[
        int,
        Bound(0),
        Doc("""How often Store is asked whether it has what was said, and whether it has what
        did not come; what it lacks twice is published again. 0 never asks. Where no Store
        answers, nothing is published again."""),
    ] = 60_000
    publish_at_most: Annotated[
        int,
        Bound(1),
        Unit("times"),
        Doc("How often a message is published that Store does not keep."),
    ] = 5
    poll_ms: Annotated[
        int,
        Bound(1),
        Doc("Between two looks into the node's cache, while there is little to read."),
    ] = 200
    stop_timeout_ms: Annotated[
        int, Bound(1), Doc("So long handlers may end and messages go out when the bot is stopped.")
    ] = 10_000
    metrics_port: Annotated[
        int | None,
        Bound(0, 65_535),
        Doc("""Where Prometheus finds the counts (127.0.0.1; 0 takes a free port); needs
        `reliable-channel-status[metrics]`."""),
    ] = None

    def __post_init__(self) -> None:
        check(self)
        checked_version(self.waku_version)
        if self.journals is not None and self.reliability != "sds":
            raise ValueError("journals are of SDS channels; give reliability='sds' as well")
        for name in (self.language, *self.languages):
            if name.split() != [name] or name != name.lower():
                raise ValueError(f"a language must be one word in small letters (got {name!r})")
        if self.language in self.languages:
            raise ValueError(f"`languages` must not have {self.language!r}: `texts` is of it")
        if self.reliability == "sds" and self.derivation != "universal":
            raise ValueError(
                "with reliability='sds' the derivation is 'universal': a channel has one topic"
            )
        if not self.prefix or self.prefix != self.prefix.strip():
            raise ValueError(f"`prefix` must be a sign or a word (got {self.prefix!r})")
