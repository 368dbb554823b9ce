"""What a run of a sweep is: a value with a stable id, and a pure function from it to a record.

A record is one flat object of numbers, words and truth values: what was set, and what was measured.
It names no machine and no duration of the machine's own, so that equal runs have equal records.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from hashlib import sha256
from typing import Any, ClassVar, Final, Literal, Self, get_args, get_origin

from reliable_channel.options import OPTION_NAMES, ChannelOptions

Value = int | float | str | bool | None
Record = Mapping[str, Value]
"""What was set and measured, by name; `id`, `run` and `seed` are always there."""

ID_DIGITS: Final = 16
_OF_THE_RUNTIME: Final = frozenset(
    {
        "retrieve_frequency_ms",
        "history",
        "history_since_ms",
        "query_on_connect",
        "query_on_connect_window_ms",
        "redundancy",
        "confirm_interval_ms",
        "event_buffer_limit",
        "wire_profile",
        "segmentation",
        "encryption_order",
        "segment_size_bytes",
        "max_payload_bytes",
        "segment_reconstruction_timeout_ms",
        "rate_limit_enabled",
        "rate_limit_messages_per_epoch",
        "rate_limit_epoch_period_s",
        "rate_limit_file",
        "retry_policy",
        "id_function",
        "content_topic",
        "pubsub_topic",
        "cluster_id",
        "num_shards",
        "service",
        "store_peer",
        "wait_for_node",
        "require_signatures",
        "marker",
        "marker_required",
        "drop_incoming",
        "seed",
    }
)
OPTIONS: Final = tuple(name for name in OPTION_NAMES if name not in _OF_THE_RUNTIME)
"""What the core obeys, and so what makes a difference in a simulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(ABC):
    """One simulation with one seed; its fields are its settings.

    Raises:
        ValueError: a setting outside what is allowed; the text begins with its name.
    """

    kind: ClassVar[str]
    measures: ClassVar[tuple[str, ...]]
    """The names of what `measure` gives."""
    takes_options: ClassVar[bool] = False
    """Whether the options of a channel are settings, too."""

    seed: int
    """Decides all that is drawn."""
    options: tuple[tuple[str, Any], ...] = ()
    """Those that differ from the defaults of `ChannelOptions`, by name."""

    @abstractmethod
    def measure(self) -> dict[str, Value]:
        """Run it. Equal runs measure equal figures, on any machine."""

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """What may be set."""
        own = tuple(one.name for one in fields(cls) if one.name != "options")
        return own + (OPTIONS if cls.takes_options else ())

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """A run from its settings and options by name, as a plan or a record has them.

        Raises:
            ValueError: as the class, and for names that are not known, or missing.
        """
        own, options = {}, {}
        known = {one.name: one for one in fields(cls) if one.name != "options"}
        for name, value in settings.items():
            if name in known:
                own[name] = _checked(name, value, known[name].type)
            elif cls.takes_options and name in OPTIONS:
                options[name] = value
            else:
                allowed = ", ".join(known) + (
                    " and the options of the core" if cls.takes_options else ""
                )
                raise ValueError(f"{name} is no setting of a {cls.kind} run; these are: {allowed}")
        for name, one in known.items():
            if name not in own and one.default is MISSING:
                raise ValueError(f"{name} is missing")
        ChannelOptions(**options)
        return cls(**own, options=tuple(sorted(options.items())))

    @property
    def settings(self) -> dict[str, Value]:
        """All that is set, defaults of the run included, options by their own names."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "options"}
        return {"run": self.kind, **own, **dict(self.options)}

    @property
    def id(self) -> str:
        """Equal for equal settings, in any plan."""
        canonical = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        return sha256(canonical.encode()).hexdigest()[:ID_DIGITS]

    def record(self) -> Record:
        """Run it, and say what was set and measured."""
        return {"id": self.id, **self.settings, **self.measure()}


def to_line(record: Record) -> str:
    """A record as a line of JSON, always the same."""
    return json.dumps(record, separators=(",", ":"), sort_keys=True)


def at_least(run: Run, **least: int) -> None:
    """Check whole numbers by name.

    Raises:
        ValueError: one is below its least.
    """
    for name, bound in least.items():
        if (value := getattr(run, name)) < bound:
            raise ValueError(f"{name} must be a whole number of at least {bound} (got {value})")


def is_share(run: Run, name: str) -> None:
    """Check a share, below 1.

    Raises:
        ValueError: it is none.
    """
    if not 0 <= (value := getattr(run, name)) < 1:
        raise ValueError(f"{name} must be a share from 0 to below 1 (got {value})")


def _checked(name: str, value: object, wanted: Any) -> Any:
    if get_origin(wanted) is Literal:
        if value in get_args(wanted):
            return value
        raise ValueError(
            f"{name} must be {' or '.join(map(repr, get_args(wanted)))} (got {value!r})"
        )
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name} must be a number (got {value!r})")
    if wanted is int and not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number (got {value!r})")
    return wanted(value)  # 0 and 0.0 are one setting with one id
