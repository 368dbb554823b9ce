"""The checks that plugins add to the doctor."""

from pathlib import Path
from typing import Final

from ...errors import PluginError
from ...finding import Finding
from ...guard import Contract
from ...plugins import working_registry
from .findings import Findings

FINDINGS: Final = Contract(
    lambda value: isinstance(value, list) and all(isinstance(one, Finding) for one in value),
    "a list of reliable_channel.spi.Finding",
)


def examine_by_plugins(findings: Findings, nodes: tuple[str, ...], config: Path | None) -> None:
    """Run the checks of all plugins that can be loaded; `examine_plugins` names the others."""
    try:
        registry, _ = working_registry()
    except PluginError:
        return
    for check in registry.checks():
        try:
            # Not `Call.guarded`, which warns of calls that block: a check may.
            with check.guard.watching(check.what):
                found = check.call()(nodes=nodes, config=config)
            findings.found += check.guard.checked(check.what, found, FINDINGS)  # type: ignore[arg-type]
        except PluginError as error:
            advice = "look into the plugin, or leave it out with RELIABLE_CHANNEL_PLUGINS"
            findings.add("problem", "plugins", check.plugin, str(error), advice)
