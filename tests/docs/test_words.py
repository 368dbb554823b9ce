"""Pages and docstrings that were edited keep to the words of docs/glossary.md.

Add a page or module here when you have edited it. The lists only grow: `EDITED` is how many there
are, and may not fall.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED = {
    r"tell(s|ing)?|told": "emit, return, raise, name, report",
    r"settle(s|d)?|settling": "acknowledge, resolve, mark, finish",
    r"who|whom|whoever": "a noun: the participant that, the caller, you",
    r"whatever": "any, every",
    r"nobody|somebody|everybody": "no participant, a peer, all participants",
    r"for good": "permanently",
    r"of (its|their|one's|your) own": "its, separate",
    r"(that|which|it) is no(?! longer\b)": "is not a, must be a",
    r"allowed (is|are)": "must be",
    r"seal(s|ed|ing)?": "encrypt",
    r"in vain": "without success",
    r"comes? along": "built in",
    r"held to": "checked",
}
PAGES = (
    "README.md",
    "docs/benchmark.md",
    "docs/command-line.md",
    "docs/comparison.md",
    "docs/compat.md",
    "docs/discovery.md",
    "docs/encryption.md",
    "docs/events.md",
    "docs/fuzzing.md",
    "docs/glossary.md",
    "docs/libp2p.md",
    "docs/light-client.md",
    "docs/message-states.md",
    "docs/mvds.md",
    "docs/peer.md",
    "docs/plugins.md",
    "docs/repair.md",
    "docs/signing.md",
    "docs/state.md",
    "docs/sweeps.md",
)
MODULES = (
    "reliable_channel/blocking.py",
    "reliable_channel/builtin_plugin.py",
    "reliable_channel/calls.py",
    "reliable_channel/channel.py",
    "reliable_channel/errors.py",
    "reliable_channel/events.py",
    "reliable_channel/guard.py",
    "reliable_channel/guarded_transport.py",
    "reliable_channel/hooks.py",
    "reliable_channel/hub.py",
    "reliable_channel/old_hooks.py",
    "reliable_channel/option_values.py",
    "reliable_channel/options.py",
    "reliable_channel/plugins.py",
    "reliable_channel/registry.py",
    "reliable_channel/resolve.py",
    "reliable_channel/sds/events.py",
    "reliable_channel/sds/options.py",
    "reliable_channel/sds/states.py",
    "reliable_channel/sds/states_of.py",
)
EDITED = 40
EXCEPTIONS = {
    "docs/glossary.md": r"(?m)^\|.*\|$|^Some words .*$",  # its last column has the banned words
}


def prose(page: str) -> str:
    """A page without code."""
    text = (ROOT / page).read_text()
    text = re.sub(EXCEPTIONS.get(page, r"(?!)"), "", text)
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def docstrings(module: str) -> Iterator[str]:
    """The docstrings of a module's public names, and those of attributes."""
    tree = ast.parse((ROOT / module).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for one in node.body:
                if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                    yield re.sub(r"`[^`]*`", "", str(one.value.value))


def found(text: str) -> list[str]:
    """The banned words of a text, each with what to write."""
    return [
        f"{match.group(0)!r} in {text[max(0, match.start() - 40) : match.end() + 30]!r}: {instead}"
        for words, instead in BANNED.items()
        for match in re.finditer(rf"\b({words})\b", text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_an_edited_page_keeps_to_the_words(page: str) -> None:
    assert found(prose(page)) == []


@pytest.mark.parametrize("module", MODULES)
def test_the_docstrings_of_an_edited_module_keep_to_the_words(module: str) -> None:
    assert [word for text in docstrings(module) for word in found(text)] == []


def test_the_lists_only_grow() -> None:
    assert len({*PAGES, *MODULES}) >= EDITED
    assert list(PAGES) == sorted(PAGES) and list(MODULES) == sorted(MODULES)


def test_a_banned_word_is_found() -> None:
    for word in ("It tells you", "whoever asks", "lost for good", "a name that is no URL"):
        assert found(word), word
    assert found("This is no longer true.") == []
