"""Checks of plugins are part of the examination, and one that fails is named."""

from pathlib import Path

import pytest

from reliable_channel._contracts.finding import Finding
from reliable_channel._plugins.hooks import Register, hookimpl
from reliable_channel._plugins.registry import Registry
from reliable_channel.cli.doctor import plugin_checks
from reliable_channel.cli.doctor.findings import Findings
from reliable_channel.cli.doctor.plugin_checks import examine_by_plugins
from reliable_channel.errors import PluginError

CONFIG = Path("loft.toml")
LANDED = Finding("ok", "loft", "north", "pigeons can land")


class Loft:
    """A plugin with one check."""

    def __init__(self, check: object) -> None:
        self.check = check

    @hookimpl
    def register_checks(self, register: Register) -> None:
        register("loft", self.check)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    found = Registry()
    monkeypatch.setattr(plugin_checks, "working_registry", lambda: (found, []))
    return found


def examined() -> list[Finding]:
    findings = Findings()
    examine_by_plugins(findings, ("pigeon://north",), CONFIG)
    return findings.found


def test_a_check_gets_what_it_names_and_its_findings_count(registry: Registry) -> None:
    seen: list[object] = []

    def check(nodes: tuple[str, ...], config: Path | None) -> list[Finding]:
        seen.extend((nodes, config))
        return [LANDED]

    registry.add(Loft(check), "north")
    assert examined() == [LANDED]
    assert seen == [("pigeon://north",), CONFIG]


def test_a_check_may_find_nothing(registry: Registry) -> None:
    registry.add(Loft(lambda: []), "south")
    assert examined() == []


def test_a_check_has_one_owner(registry: Registry) -> None:
    registry.add(Loft(lambda: []), "north")
    with pytest.raises(PluginError, match="registered twice, by 'north' and by 'south'"):
        registry.add(Loft(lambda: []), "south")


def fails() -> list[Finding]:
    raise LookupError("lost my way")


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (fails, "plugin 'sick': check 'loft' failed: LookupError('lost my way')"),
        (lambda: "all is well", "check 'loft' must return a list of reliable_channel.spi.Finding"),
        (lambda: [LANDED, "well"], "must return a list of reliable_channel.spi.Finding"),
        ("nowhere:check", "check 'loft': import of 'nowhere:check' failed"),
    ],
)
def test_a_check_that_fails_is_a_problem_of_its_plugin(
    registry: Registry, check: object, says: str
) -> None:
    registry.add(Loft(check), "sick")
    (found,) = examined()
    assert (found.level, found.check, found.where) == ("problem", "plugins", "sick")
    assert says in found.text and "RELIABLE_CHANNEL_PLUGINS" in found.advice


def test_plugins_that_cannot_be_selected_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_PLUGINS", "nowhere")
    assert examined() == []  # `examine_plugins` has said it


def test_a_level_that_is_not_one_is_refused() -> None:
    with pytest.raises(ValueError, match="`level` must be one of ok, note, warning, problem"):
        Finding("fine", "loft", "north", "pigeons can land")  # type: ignore[arg-type]
