"""The snippets of docs/sync-protocols.md and the README run, and what is public is described."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import reliable_channel_svs
import reliable_channel_svs.ndn
from reliable_channel._plugins.loading import process_registry

PAGES = [
    Path(__file__).parents[3] / "docs" / "sync-protocols.md",
    Path(__file__).parents[1] / "README.md",
]
TEXTS = [page.read_text().rpartition("\n## State Vector Sync")[2] for page in PAGES]
SNIPPETS = [s for text in TEXTS for s in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The plugin as readers of the page have it; other tests name those that they want."""
    monkeypatch.setenv("RELIABLE_CHANNEL_PLUGINS", "svs")
    process_registry.cache_clear()
    yield
    process_registry.cache_clear()


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_runs(snippet: str, installed: None) -> None:
    exec(compile(snippet, "page", "exec"), {"__name__": "snippet"})


@pytest.mark.parametrize("package", [reliable_channel_svs, reliable_channel_svs.ndn])
def test_public_names_are_sorted_and_described(package: ModuleType) -> None:
    def order(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 2 if name[0].islower() else 1, name)

    assert package.__all__ == sorted(set(package.__all__), key=order)
    for name in package.__all__:
        value = getattr(package, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__ and not value.__doc__.startswith(f"{name}("), name
