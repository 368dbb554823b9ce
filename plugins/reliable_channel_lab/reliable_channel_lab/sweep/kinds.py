"""Kinds of runs in a sweep, by name."""

from collections.abc import Mapping
from typing import Any, Final

from .group import GroupRun
from .quiet import QuietRun
from .runs import Run

KINDS: Final[Mapping[str, type[Run]]] = {kind.kind: kind for kind in (GroupRun, QuietRun)}


def run_of(settings: Mapping[str, Any]) -> Run:
    """Return the run with the given `Run.settings`."""
    own = dict(settings)
    return KINDS[own.pop("run")].of(own)
