"""`python -m reliable_channel.migrate FILE…`: rewrite Python files of 0.1 to the names of 0.2.

Folders are searched for `*.py`. A line names each file that changes, and each place where it cannot
decide; run your formatter afterwards.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from ._moved import MOVED, RENAMED

ROOT = "reliable_channel"
BLOCKING = "BlockingReliableChannel"
_Node = ast.stmt | ast.expr | ast.alias


def migrated(source: str) -> str:
    """The source with the names of today.

    Raises:
        SyntaxError: it is not Python.
    """
    tree = ast.parse(source)
    edits: list[tuple[_Node, str]] = [*_imports(tree), *_attributes(tree), *_renames(tree)]
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    for node, text in sorted(edits, key=lambda edit: _start(edit[0]), reverse=True):
        assert node.end_lineno is not None
        first, last = node.lineno - 1, node.end_lineno - 1
        after = lines[last][node.end_col_offset :]
        lines[first : last + 1] = [lines[first][: node.col_offset] + text.encode() + after]
    return b"".join(lines).decode()


def _start(node: _Node) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """`from reliable_channel import …`, with a line for each module that has some of the names."""
    needs_blocking = any(True for _ in _calls_of_sync(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module != ROOT or node.level:
            continue
        homes: defaultdict[str, list[str]] = defaultdict(list)
        for alias in node.names:
            home = f"{ROOT}.{MOVED[alias.name]}" if alias.name in MOVED else ROOT
            homes[home].append(ast.unparse(alias))
        if needs_blocking and "ReliableChannel" in homes[ROOT] and BLOCKING not in homes[ROOT]:
            homes[ROOT].append(BLOCKING)
            if not _is_used(tree, "ReliableChannel"):
                homes[ROOT].remove("ReliableChannel")
        written = [_import(home, sorted(names)) for home, names in sorted(homes.items()) if names]
        text = f"\n{' ' * node.col_offset}".join(written)
        if set(homes) != {ROOT} or needs_blocking:
            yield node, text


def _import(home: str, names: list[str]) -> str:
    line = f"from {home} import {', '.join(names)}"
    return line if len(line) <= 88 else f"from {home} import ({', '.join(names)})"


def _attributes(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """`reliable_channel.MessageStored`, and `ReliableChannel.sync`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="reliable_channel"), attr=name) if name in MOVED:
                yield node, f"{ROOT}.{MOVED[name]}.{name}"
    yield from _calls_of_sync(tree)


def _calls_of_sync(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="ReliableChannel"), attr="sync"):
                yield node, BLOCKING
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="reliable_channel"), attr="ReliableChannel"),
                attr="sync",
            ):
                yield node, f"{ROOT}.{BLOCKING}"


def _renames(tree: ast.AST) -> Iterator[tuple[_Node, str]]:
    """Names of `RENAMED` that are imported from modules of `reliable_channel`, and their uses."""
    imported = [
        alias
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{ROOT}.")
        for alias in node.names
        if alias.name in RENAMED
    ]
    for alias in imported:
        yield alias, RENAMED[alias.name] + (f" as {alias.asname}" if alias.asname else "")
    names = {alias.name for alias in imported if alias.asname is None}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            yield node, RENAMED[node.id]


def _is_used(tree: ast.AST, name: str) -> bool:
    """Whether a name stands anywhere but in `name.sync`."""
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))
    return uses > sum(text == BLOCKING for _, text in _calls_of_sync(tree))


def files(paths: Iterable[str]) -> Iterator[Path]:
    """The Python files of which these are the paths, or the folders."""
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.py")) if path.is_dir() else (path,)


def main(paths: list[str]) -> int:
    """Rewrite files; the exit status is 1 where one cannot be read."""
    status = 0
    for path in files(paths):
        try:
            before = path.read_text()
            after = migrated(before)
        except (OSError, ValueError, SyntaxError) as error:
            print(f"{path}: left as it is: {error}", file=sys.stderr)  # noqa: T201
            status = 1
            continue
        if after != before:
            path.write_text(after)
            print(path)  # noqa: T201
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if sys.argv[1:] else __doc__)
