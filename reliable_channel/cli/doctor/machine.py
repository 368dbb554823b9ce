"""Checks of the environment, the plugins and the state file on this machine."""

import os
import shutil
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...config import CHANNEL_NAMES, FILE_VARIABLE, PREFIX
from ...errors import PluginError
from ...state.files import check, is_in_use, lacking, summary
from .findings import Findings

if TYPE_CHECKING:
    from ...state import StateStore

OTHER_VARIABLES: Final = (
    "RELIABLE_CHANNEL_BOT_PASSPHRASE",
    "RELIABLE_CHANNEL_COMPAT_PAYLOAD",
    "RELIABLE_CHANNEL_JOIN",
    "RELIABLE_CHANNEL_LOG_FORMAT",
    "RELIABLE_CHANNEL_LOG_LEVEL",
    "RELIABLE_CHANNEL_PLUGINS",
    "RELIABLE_CHANNEL_TEST_PATIENCE_S",
    "RELIABLE_CHANNEL_TRACE_PLUGINS",
    FILE_VARIABLE,
)
MIN_FREE_BYTES: Final = 100_000_000
OTHERS_MAY_READ: Final = 0o077


def examine_environment(findings: Findings, environment: Mapping[str, str]) -> None:
    """Look for environment variables that no option reads, such as misspelt names."""
    variables = {*(PREFIX + name.upper() for name in CHANNEL_NAMES), *OTHER_VARIABLES}
    known = {name.removeprefix(PREFIX) for name in variables}
    for name in sorted(environment):
        end = name.removeprefix(PREFIX)
        if end in (name, *known) or end.startswith("NODE_"):
            continue
        close = get_close_matches(end, known, 1, cutoff=0.8)
        if close:
            findings.add(
                "warning",
                "environment",
                name,
                "nothing reads this variable",
                f"did you mean {PREFIX}{close[0]}?",
            )


def examine_plugins(findings: Findings) -> None:
    from ..._plugins.loading import installed, working_registry

    try:
        found = list(installed())
        working_registry()
    except PluginError as error:
        findings.add("problem", "plugins", "plugins", str(error), "see `reliable-channel plugins`")
        return
    left_out = [one.name for one in found if one.problem.startswith("left out")]
    if left_out:
        text = f"left out by RELIABLE_CHANNEL_PLUGINS: {', '.join(left_out)}"
        findings.add("note", "plugins", "plugins", text)
    for plugin in found:
        if plugin.problem and plugin.name not in left_out:
            findings.add(
                "problem",
                "plugins",
                plugin.name,
                plugin.problem,
                "upgrade or uninstall it, or leave it out with RELIABLE_CHANNEL_PLUGINS",
            )
    names = [one.name for one in found if one.name != "built in" and not one.problem]
    findings.add("ok", "plugins", "plugins", f"in use: {', '.join(names) or 'none'}")


def examine_state(findings: Findings, store: "StateStore | None", ids: tuple[str, str]) -> None:
    """Examine the state file of a channel, without changing it."""
    path: Path | None = getattr(store, "path", None)
    if path is None:
        findings.add(
            "note",
            "state",
            "state",
            "nothing outlives the process",
            "give --state sqlite:///path to keep messages across restarts",
        )
        return
    _examine_directory(findings, path)
    if not path.exists():
        findings.add("ok", "state", str(path), "does not exist yet; the first start makes it")
        return
    if problems := check(path):
        advice = "bring back a copy (`reliable-channel state restore`), or move the file away"
        findings.add("problem", "state.sound", str(path), problems[0], advice)
        return
    if lacks := lacking(path):
        advice = "bring back a newer copy, or start: what Store and peers have is fetched again"
        findings.add("warning", "state.lacks", str(path), lacks, advice)
    found = summary(path)
    if (found.channel_id, found.sender_id) != ids:
        findings.add(
            "problem",
            "state.identity",
            str(path),
            f"belongs to {found.sender_id!r} in channel {found.channel_id!r}",
            "give another path, or {channel_id} and {sender_id} in the path",
        )
    if is_in_use(path):
        findings.add(
            "problem",
            "state.in_use",
            str(path),
            "another process has it open",
            "stop that process, or give this one another sender id and path",
        )
    if path.stat().st_mode & OTHERS_MAY_READ:
        findings.add(
            "warning",
            "state.mode",
            str(path),
            f"other users can read it (mode {path.stat().st_mode & 0o777:o})",
            f"chmod 600 {path}",
        )
    findings.add(
        "ok",
        "state",
        str(path),
        f"{found.messages:,} messages, {found.unacknowledged} unacknowledged, "
        f"{found.size_bytes / 1e6:.1f} MB",
    )


def _examine_directory(findings: Findings, path: Path) -> None:
    directory = path.parent
    while not directory.exists():
        directory = directory.parent
    if not os.access(directory, os.W_OK | os.X_OK):
        findings.add(
            "problem",
            "state.directory",
            str(directory),
            "this user may not write here",
            "change its owner or mode, or give another path with --state",
        )
    if (free := shutil.disk_usage(directory).free) < MIN_FREE_BYTES:
        findings.add(
            "warning",
            "state.disk",
            str(directory),
            f"only {free / 1e6:.0f} MB are free",
            "make room: `send` is refused when the disk is full",
        )
