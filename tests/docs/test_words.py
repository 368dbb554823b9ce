"""Pages, docstrings, errors and help texts keep to the words of docs/glossary.md.

All pages are read, and the docstrings of `FOLDERS`: packages, and the programs that measure them.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[2]
BANNED = {
    r"tell(s|ing)?|told": "emit, return, raise, name, report",
    r"settle(s|d)?|settling": "acknowledge, resolve, mark, finish",
    r"who|whom|whoever": "a noun: the participant that, the caller, you",
    r"whatever": "any, every",
    r"(?-i:[Nn]obody|[Ss]omebody|[Ee]verybody)": "no participant, a peer, all participants",
    r"for good": "permanently",
    r"of (its|their|one's|your) own": "its, separate",
    r"(that|which|it) is no(?! longer\b)": "is not a, must be a",
    r"allowed (is|are)": "must be",
    r"seal(s|ed|ing)?": "encrypt",
    r"in vain": "without success",
    r"comes? along": "built in",
    r"held to": "checked",
}
ALL_PAGES = (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
PAGES = sorted(str(page.relative_to(ROOT)) for page in ALL_PAGES)
FOLDERS = (
    "bench",
    "docs",
    "examples",
    "interop",
    "plugins/pytest_reliable_channel",
    "plugins/reliable_channel_audit",
    "plugins/reliable_channel_conformance",
    "plugins/reliable_channel_encryption/reliable_channel_encryption",
    "plugins/reliable_channel_lab",
    "plugins/reliable_channel_metrics",
    "plugins/reliable_channel_moderation/reliable_channel_moderation",
    "plugins/reliable_channel_mvds/reliable_channel_mvds",
    "plugins/reliable_channel_signing/reliable_channel_signing",
    "plugins/reliable_channel_status/reliable_channel_status",
    "plugins/reliable_channel_svs/reliable_channel_svs",
    "plugins/reliable_channel_watch",
    "release",
    "reliable_channel",
    "waku",
)
MODULES = sorted(
    str(module.relative_to(ROOT))
    for folder in FOLDERS
    for module in (ROOT / folder).rglob("*.py")
    if not module.name.endswith("_pb2.py")
)
EXCEPTIONS = {
    "docs/glossary.md": r"(?m)^\|.*\|$|^Some words .*$",  # its last column has the banned words
}


def prose(page: str) -> str:
    """A page without code."""
    text = (ROOT / page).read_text()
    text = re.sub(EXCEPTIONS.get(page, r"(?!)"), "", text)
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


@lru_cache(maxsize=1)  # the two tests of a module follow each other
def nodes(module: str) -> list[ast.AST]:
    """The syntax tree of a module."""
    return list(ast.walk(ast.parse((ROOT / module).read_text())))


def docstrings(module: str) -> Iterator[str]:
    """The docstrings of a module's public names, and those of attributes."""
    for node in nodes(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for one in node.body:
                if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                    yield re.sub(r"`[^`]*`", "", str(one.value.value))


def strings(module: str) -> Iterator[str]:
    """What a module may show: its string literals of more than one word that are no docstrings."""
    silent = {id(node.value) for node in nodes(module) if isinstance(node, ast.Expr)}
    for node in nodes(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in silent and " " in node.value:
                yield re.sub(r"`[^`]*`|/who\b", "", node.value)


ANY: Final = re.compile(rf"\b(?:{'|'.join(f'(?:{words})' for words in BANNED)})\b", re.IGNORECASE)


def found(text: str) -> list[str]:
    """The banned words of a text, each with what to write."""
    if not ANY.search(text):
        return []
    return [
        f"{match.group(0)!r} in {text[max(0, match.start() - 40) : match.end() + 30]!r}: {instead}"
        for words, instead in BANNED.items()
        for match in re.finditer(rf"\b({words})\b", text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_keeps_to_the_words(page: str) -> None:
    assert found(prose(page)) == []


@pytest.mark.parametrize("texts", [docstrings, strings])
@pytest.mark.parametrize("module", MODULES)
def test_docstrings_errors_help_and_logs_keep_to_the_words(
    module: str, texts: Callable[[str], Iterator[str]]
) -> None:
    if texts is docstrings or not Path(module).name.startswith("test_"):
        assert [word for text in texts(module) for word in found(text)] == []


def test_a_banned_word_is_found() -> None:
    for word in ("It tells you", "whoever asks", "lost for good", "a name that is no URL"):
        assert found(word), word
    assert found("This is no longer true.") == []
