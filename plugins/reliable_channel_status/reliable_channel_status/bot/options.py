"""Options of a bot, with defaults that suit a bot in one community."""

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from reliable_channel.config import PREFIX, settings, variable
from reliable_channel.sds.declared import Bound, Doc, Unit, check
from waku import PubsubTopic

from ..wire.chats import Derivation
from ..wire.sealing import WakuVersion, checked_version
from ..wire.topics import DEFAULT_SHARD, NON_PROTECTED_SHARD
from .commands import UsageError, converter
from .limits import LoopLimits, RateLimit
from .texts import ENGLISH, BotTexts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Reliability: TypeAlias = Literal["plain", "sds"]
DirectEncryption: TypeAlias = Literal["dh", "ratchet"]

FOR_USERS: Final = RateLimit(10, 10_000)
"""Default limit for a user, which allows one command per second on average."""
FOR_CHANNELS: Final = RateLimit(20, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotOptions:
    """Options of a bot.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    prefix: str = "!"
    """Prefix of the bot's commands. A mention of the bot calls a command, too, without the prefix.
    """
    display_name: str = ""
    """Name that the bot shows to users."""
    image: Annotated[
        str | Path | None,
        Doc("""Path of the bot's picture, a PNG, JPEG, GIF or WebP file. Pillow
            (`reliable-channel-status[images]`) makes a picture of more than 40 kB smaller."""),
    ] = None
    reliability: Annotated[
        Reliability,
        Doc("""Form of messages in communities, `sds` (an SDS channel for each community) or
            `plain`. The bot reads both forms, and writes to public chats in plain form."""),
    ] = "plain"
    journals: str | Path | None = None
    """Folder of journal files, one for each community's SDS channel, for `reliable-channel audit`.
    """
    derivation: Derivation = "universal"
    """Kind of content topic on which the bot writes into community channels. The bot listens to
    both kinds of content topic."""
    shard: PubsubTopic = DEFAULT_SHARD
    """Shard on which the bot writes and listens, 32 by default as for all Status clients."""
    also_listen: tuple[PubsubTopic, ...] = (NON_PROTECTED_SHARD,)
    """Further shards to listen to, because clients before 2.40 write requests to join on shard 64.
    """
    waku_version: WakuVersion = 1
    """Field `version` of Waku messages that the bot sends. All Status clients read version 1.
    Clients from 2.40 on send version 0, which clients before 2.38 drop. The bot reads both
    versions."""
    request_membership: Annotated[
        bool,
        Doc("""True if the bot requests to join a community that does not list the bot as a member.
            Status clients show only messages of members."""),
    ] = True
    needs_membership: Annotated[
        bool,
        Doc("""True if `run` ends with `NotAMember` (exit status 1) after the bot was rejected or
            kicked. If False, the bot continues to run."""),
    ] = False
    history_ms: Annotated[
        int,
        Bound(1),
        Doc("""Time span of the Store query at the start, which finds messages that edits, answers
            and pins refer to. The bot does not answer messages from before its first start."""),
    ] = 86_400_000
    user_limit: RateLimit = FOR_USERS
    """Rate limit of commands and mentions for each user, in all chats together."""
    channel_limit: RateLimit = FOR_CHANNELS
    """Rate limit of commands and mentions for each channel."""
    loops: LoopLimits = field(default_factory=LoopLimits)
    """Limits of answer loops, after which the bot stops answering a user."""
    texts: BotTexts = ENGLISH
    """Texts of the bot itself, such as the usage of a command."""
    language: str = "en"
    """Name of the language of `texts`, for users that chose no language."""
    languages: Mapping[str, BotTexts] = field(default_factory=dict)
    """Texts of the bot in further languages, by the name of the language, such as `de`. If there
    are further languages, users choose with `!language`."""
    handler_timeout_ms: Annotated[int, Bound(1)] = 30_000
    handlers_at_once: Annotated[int, Bound(1), Unit("handlers")] = 32
    direct_encryption: Annotated[
        DirectEncryption,
        Doc("""Encryption of direct messages, `dh` (without forward secrecy) or `ratchet` (X3DH and
            a double ratchet). With `ratchet`, the bot publishes its bundle with each direct
            message."""),
    ] = "dh"
    confirm_ms: Annotated[
        int,
        Bound(0),
        Doc("""Interval at which the bot looks for its own and missed messages in Store (0 for
            never). A message that two Store queries did not find is published again."""),
    ] = 60_000
    publish_at_most: Annotated[
        int,
        Bound(1),
        Unit("times"),
        Doc("Maximum number of times that a message is published, if Store does not keep it."),
    ] = 5
    poll_ms: Annotated[
        int,
        Bound(1),
        Doc("Polling interval of the node's cache while there is little traffic."),
    ] = 200
    stop_timeout_ms: Annotated[
        int,
        Bound(1),
        Doc("Time limit for functions to end and messages to be sent after the bot is stopped."),
    ] = 10_000
    metrics_port: Annotated[
        int | None,
        Bound(0, 65_535),
        Doc("""Port on 127.0.0.1 where Prometheus reads the bot's counters (0 for a free port). A
            metrics port needs `reliable-channel-status[metrics]`."""),
    ] = None

    def __post_init__(self) -> None:
        check(self)
        checked_version(self.waku_version)
        if self.journals is not None and self.reliability != "sds":
            raise ValueError("only SDS channels write journals; give reliability='sds' as well")
        for name in (self.language, *self.languages):
            if name.split() != [name] or name != name.lower():
                raise ValueError(f"a language must be one word in small letters (got {name!r})")
        if self.language in self.languages:
            raise ValueError(
                f"`languages` must not have {self.language!r}: the texts of this language belong "
                "into `texts`"
            )
        if self.reliability == "sds" and self.derivation != "universal":
            raise ValueError(
                "reliability='sds' needs derivation='universal', because a channel has one "
                "content topic"
            )
        if not self.prefix or self.prefix != self.prefix.strip():
            raise ValueError(f"`prefix` must be a sign or a word (got {self.prefix!r})")


TABLE: Final = "bot"

Settings = TypeVar("Settings", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class BotArguments:
    """Arguments of `StatusBot` that a configuration file or the environment can set."""

    node: tuple[str, ...] = ()
    key_file: str = ""
    community: str = ""
    channels: tuple[str, ...] = ()
    state: str = ""
    moderators: tuple[str, ...] = ()
    community_key_file: str = ""
    network: str = ""


def read_settings(
    kind: type[Settings],
    table: str,
    *,
    file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Return the program's settings as a dataclass, from the table `[bot.TABLE]` and the
    environment.

    The fields are annotated like parameters of commands, or as `Path` or `tuple[str, ...]`. The
    environment overrides the file, and the file overrides the default.

    Args:
        kind: a dataclass.
        table: one word in small letters.
        file: a TOML file; None for the one that `RELIABLE_CHANNEL_CONFIG` names.
        environment: variables; an empty one counts as unset.

    Raises:
        ValueError: a value of the wrong kind, an unknown name in the file, or a field without
            value; the text names it.
        TypeError: a field has an annotation that no text becomes.
        OSError: the file cannot be read.
    """
    given = settings(TABLE, _names(BotOptions, BotArguments), file, environment, has_tables=True)
    values = given.get(table, {})
    if not isinstance(values, Mapping):
        raise ValueError(f"`{table}` must be a table: write [bot.{table}]")
    names = _names(kind)
    for name in values:
        if name not in names:
            raise ValueError(f"[bot.{table}] must have only {', '.join(names)} (got `{name}`)")
    found = _read(kind, values, f"[bot.{table}]", f"{PREFIX}BOT_{table.upper()}_", environment)
    for one in fields(kind):
        has_default = one.default is not MISSING or one.default_factory is not MISSING
        if one.name not in found and not has_default:
            named = f"{PREFIX}BOT_{table.upper()}_{one.name.upper()}"
            raise ValueError(f"`{one.name}` is missing: give it in [bot.{table}] or as {named}")
    return kind(**found)


def bot_settings(
    file: str | Path | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of `StatusBot` and the options from a file and the environment.

    Raises:
        ValueError: a value of the wrong kind, or an unknown name in the file.
        OSError: the file cannot be read.
    """
    names = _names(BotOptions, BotArguments)
    given = settings(TABLE, names, file, environment, has_tables=True)
    values = {name: value for name, value in given.items() if name in names}
    where, prefix = f"[{TABLE}]", f"{PREFIX}BOT_"
    arguments = _read(BotArguments, values, where, prefix, environment)
    return arguments, _read(BotOptions, values, where, prefix, environment)


def _names(*kinds: "type[DataclassInstance]") -> tuple[str, ...]:
    """The fields that a text can give; of a bot's own settings, all."""
    found = []
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        is_own = kind not in (BotOptions, BotArguments)
        found += [f.name for f in fields(kind) if is_own or _is_readable(hints[f.name])]
    return tuple(found)


def _read(
    kind: "type[DataclassInstance]",
    values: Mapping[str, Any],
    where: str,
    prefix: str,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    hints, found = get_type_hints(kind, include_extras=True), {}
    for name in _names(kind):
        named = f"{prefix}{name.upper()}"
        if not _is_readable(hints[name]):
            raise TypeError(
                f"option {kind.__name__}.{name} has the type {hints[name]!r}, which cannot be "
                "read from text"
            )
        if text := variable(named, environment):
            found[name] = _of_text(hints[name], named, text)
        elif name in values:
            found[name] = _of_value(hints[name], f"{name}` in `{where}", values[name])
    return found


def _is_readable(hint: Any) -> bool:
    return hint is Path or _is_words(hint) or converter(hint) is not None


def _is_words(hint: Any) -> bool:
    return get_origin(hint) is tuple and get_args(hint) == (str, ...)


def _of_text(hint: Any, name: str, text: str) -> Any:
    if _is_words(hint):
        return tuple(text.split())
    if hint is Path:
        return Path(text)
    reads = converter(hint)
    assert reads is not None  # `_is_readable`
    try:
        return reads.value(name, text)
    except UsageError as error:
        raise ValueError(str(error)) from None


def _of_value(hint: Any, name: str, value: Any) -> Any:
    """A value of the file: a list for words, else what its text would be."""
    if _is_words(hint):
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"`{name}` must be a list of texts (got {value!r})")
        return tuple(words)
    if isinstance(value, list | dict):
        raise ValueError(f"`{name}` must be one value (got {value!r})")
    return _of_text(hint, name, str(value))
