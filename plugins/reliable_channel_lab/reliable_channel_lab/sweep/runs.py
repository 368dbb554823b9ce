"""Run of a sweep, a value with a stable id from which a pure function makes a record.

A record is a flat object of numbers, words and booleans, with settings and measurements. A record
names no machine and no real duration, so equal runs have equal records.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Final, Self

from reliable_channel.config import SETTINGS, nested
from reliable_channel.options import BloomParameters, ChannelOptions, RepairOptions
from reliable_channel.sds import CoreLimits, SdsOptions
from reliable_channel.sds.declared import Bound, Doc, check, declared

Value = int | float | str | bool | None
Record = Mapping[str, Value]
"""Settings and measurements of a run, by name. A record always contains `id`, `run` and `seed`."""

ID_DIGITS: Final = 16
_OF_CORE: Final = {
    "": SdsOptions,
    "bloom": BloomParameters,
    "limits": CoreLimits,
    "repair": RepairOptions,
}
OPTIONS: Final = (
    *(
        name
        for name, one in SETTINGS.items()
        if one.group in _OF_CORE and one.name in declared(_OF_CORE[one.group])
    ),
    "retrieval_strategy",
)
"""Options of the core, by flat name. Options outside this list make no difference in a
simulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(ABC):
    """Simulation with one seed. The fields of the dataclass are the settings of the run.

    Raises:
        ValueError: a setting that is not allowed; the text begins with its name.
    """

    kind: ClassVar[str]
    measures: ClassVar[tuple[str, ...]]
    """Names of the measurements that `measure` returns."""
    takes_options: ClassVar[bool] = False
    """True if options of the channel are also settings of the run."""

    seed: Annotated[int, Bound(0), Doc("The seed decides everything random in the run.")]
    options: tuple[tuple[str, Any], ...] = ()
    """Options that differ from the defaults of `ChannelOptions`, by flat name."""

    def __post_init__(self) -> None:
        check(self)

    @abstractmethod
    def measure(self) -> dict[str, Value]:
        """Run the simulation, and return its measurements. Equal runs return equal measurements on
        any machine."""

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        own = tuple(one.name for one in fields(cls) if one.name != "options")
        return own + (OPTIONS if cls.takes_options else ())

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return a run with the settings and options of a plan or a record.

        Raises:
            ValueError: as the class, and for names that are not known, or missing.
        """
        own: dict[str, Any] = {}
        options: dict[str, Any] = {}
        known = {one.name: one for one in fields(cls) if one.name != "options"}
        for name, value in settings.items():
            if name in known:
                # 0 and 0.0 are one setting with one id
                whole = declared(cls)[name].kind is float and type(value) is int
                own[name] = float(value) if whole else value
            elif cls.takes_options and name in OPTIONS:
                options[name] = value
            else:
                allowed = ", ".join(known) + (
                    " and the options of the core" if cls.takes_options else ""
                )
                raise ValueError(
                    f"{name} is not a setting of a {cls.kind} run; its settings are: {allowed}"
                )
        for name, one in known.items():
            if name not in own and one.default is MISSING:
                raise ValueError(f"the setting {name} is missing")
        ChannelOptions(**nested(options))
        return cls(**own, options=tuple(sorted(options.items())))

    @property
    def settings(self) -> dict[str, Value]:
        """Settings of the run, including defaults, and its options by name."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "options"}
        return {"run": self.kind, **own, **dict(self.options)}

    @property
    def id(self) -> str:
        """Id of the run, which is equal for equal settings in any plan."""
        canonical = json.dumps(self.settings, sort_keys=True, separators=(",", ":"))
        return sha256(canonical.encode()).hexdigest()[:ID_DIGITS]

    def record(self) -> Record:
        """Run the simulation, and return its settings and measurements."""
        return {"id": self.id, **self.settings, **self.measure()}


def to_line(record: Record) -> str:
    """Return a record as a line of JSON, with equal text for equal records."""
    return json.dumps(record, separators=(",", ":"), sort_keys=True)
