"""Checks of the doctor command that plugins add."""

from pathlib import Path

from ..._contracts.finding import Finding
from ..._contracts.plugin_code import SHORT
from ..._plugins.loading import working_registry
from ..._plugins.registry import Kind
from ...errors import PluginError
from .findings import Findings


def examine_by_plugins(findings: Findings, nodes: tuple[str, ...], config: Path | None) -> None:
    """Run the checks of all plugins that can be loaded. `examine_plugins` reports plugins that
    cannot be loaded."""
    try:
        registry, _ = working_registry()
    except PluginError:
        return
    for check in registry.registered(Kind.CHECK):
        try:
            # Not `Owner.at_load`, which warns of calls that block: a check may.
            with check.owner.loading():
                found = check.call()(nodes=nodes, config=config)
            if not (isinstance(found, list) and all(isinstance(one, Finding) for one in found)):
                must_be = "must return a list of reliable_channel.spi.Finding"
                raise PluginError(f"{check.owner.note} {must_be} (got {SHORT.repr(found)})")
            findings.found += found
        except PluginError as error:
            advice = "look into the plugin, or leave it out with RELIABLE_CHANNEL_PLUGINS"
            findings.add("problem", "plugins", check.plugin, str(error), advice)
