"""Pages, docstrings, errors and help texts keep to the words of docs/glossary.md.

All pages are read, and the docstrings of `FOLDERS`: packages, and the programs that measure them.
"""

import ast
import re
from collections.abc import Iterator
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
PAGES = (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
FOLDERS = (
    "bench",
    "docs",
    "examples",
    "interop",
    "plugins/pytest_reliable_channel",
    "plugins/reliable_channel_audit/reliable_channel_audit",
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
EXCEPTIONS = {
    "glossary.md": r"(?m)^\|.*\|$|^Some words .*$",  # its last column has the banned words
}


def prose(page: Path) -> str:
    text = re.sub(EXCEPTIONS.get(page.name, r"(?!)"), "", page.read_text(encoding="utf-8"))
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def texts(module: Path) -> Iterator[str]:
    """Docstrings, those of attributes, and what a module may show: its strings of several words."""
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    silent = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for one in node.body:
                if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                    yield re.sub(r"`[^`]*`", "", str(one.value.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_shown = id(node) not in silent and not module.name.startswith("test_")
            if is_shown and " " in node.value:
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


def test_pages_keep_to_the_words() -> None:
    assert [(page.name, word) for page in PAGES for word in found(prose(page))] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_errors_help_and_logs_keep_to_the_words(folder: str) -> None:
    modules = [one for one in (ROOT / folder).rglob("*.py") if not one.name.endswith("_pb2.py")]
    assert modules
    assert [(m.name, word) for m in modules for text in texts(m) for word in found(text)] == []


def test_a_banned_word_is_found() -> None:
    for word in ("It tells you", "whoever asks", "lost for good", "a name that is no URL"):
        assert found(word), word
    assert found("This is no longer true.") == []
