"""Checks the sentences that users read (`python -m tests.style [PATH …]`).

The rules are those of docs/glossary.md, Style: R1 how a docstring begins, R2 booleans, R4 short
sentences, R5 words for people, R6 the form of errors, R7 docstrings that say nothing, R9 no diary
in manuals.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
MAX_WORDS: Final = 20
"""Words of a sentence in a docstring; code in backticks counts as one."""
MIN_WORDS: Final = 5
"""Words of a docstring that says more than the name, sections included."""

_NOT_FIRST: Final = frozenset("what whether how of those one all which who where when it".split())
"""Words that begin neither a noun phrase nor a command."""
_NO_VERB: Final = _NOT_FIRST | frozenset(
    "the a an this these every each any no for in as with at from by if true its their".split()
)
_PEOPLE: Final = re.compile(
    r"\b([Ww]ho|whom|[Ww]hoever|[Nn]obody|[Ss]omebody|[Ee]verybody|(is|are) none"
    r"|[Aa]s [\w .-]+ has it)\b"
)
_MONTH: Final = (
    "(January|February|March|April|May|June|July|August|September|October|November|December)"
)
_DIARY: Final = re.compile(
    rf"\b\d{{1,2}} {_MONTH} 20\d\d\b|(?<![=/\d])\b20\d\d-\d\d-\d\d\b(?!T)"
    r"|\b(at load \d|load average|was not run|was tried)\b"
)
_CODE: Final = re.compile(r"```.*?```|`[^`]*`|<!--.*?-->", re.DOTALL)
_SECTION: Final = re.compile(r"^(?:Args|Raises|Returns|Yields|Attributes|Example|Examples):$")


class Finding(NamedTuple):
    """A sentence that breaks a rule."""

    rule: str
    place: str
    text: str


class Text(NamedTuple):
    """A text of a module that users read, and what it describes."""

    kind: str
    """`function`, `noun` (a class, attribute or option), `help`, `error` or `module`."""
    line: int
    text: str


def texts(source: str) -> Iterator[Text]:
    """Yield the docstrings of public names, and the texts of options, flags and errors."""
    yield from _of_body(ast.parse(source), is_public=True)


def _of_body(node: ast.AST, *, is_public: bool) -> Iterator[Text]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if is_public and (doc := ast.get_docstring(node)):
            yield Text(_kind(node), node.body[0].lineno, doc)
        if is_public and isinstance(node, ast.Module | ast.ClassDef):
            yield from _attributes(node.body)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inside = isinstance(node, ast.Module | ast.ClassDef)
            yield from _of_body(child, is_public=is_public and inside and child.name[0] != "_")
        else:
            yield from _shown(child)
            yield from _of_body(child, is_public=is_public)


def _kind(node: ast.AST) -> str:
    match node:
        case ast.Module():
            return "module"
        case ast.ClassDef():
            return "noun"
        case (
            ast.FunctionDef(decorator_list=decorators)
            | ast.AsyncFunctionDef(decorator_list=decorators)
        ):
            names = {ast.unparse(each).rpartition(".")[2] for each in decorators}
            return "noun" if names & {"property", "cached_property"} else "function"
    raise TypeError(node)


def _attributes(body: list[ast.stmt]) -> Iterator[Text]:
    for statement, below in pairwise(body):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if name[0] != "_":
                yield Text("noun", below.lineno, " ".join(text.split()))


def _shown(node: ast.AST) -> Iterator[Text]:
    match node:
        case ast.Raise(exc=ast.Call(args=[message, *_])) if text := _literal(message):
            yield Text("error", node.lineno, text)
        case ast.Call(func=ast.Name(id="Doc"), args=[message]) if text := _literal(message):
            yield Text("noun", node.lineno, " ".join(text.split()))
        case ast.Call(keywords=keywords):
            for keyword in keywords:
                if keyword.arg == "help" and (text := _literal(keyword.value)):
                    yield Text("help", node.lineno, " ".join(text.split()))


def _literal(node: ast.AST) -> str:
    """Return the text of a string, with `{}` for each value that is put into it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_literal(part) or "{}" for part in parts)
    return ""


def of_text(text: Text) -> Iterator[tuple[str, str]]:
    """Yield the rules that a text breaks, each with the sentence."""
    prose = _CODE.sub("x", text.text)
    if found := _PEOPLE.search(prose):
        yield "R5", f"{found[0]}: {text.text}"
    if text.kind == "error":
        if re.search(r"must (be|have|not)\b", prose) and not re.search(r"\(got|: ", text.text):
            yield "R6", text.text
        if re.search(r"\(not \{\}|, not \{\}", text.text):
            yield "R6", text.text
        return
    summary = prose.partition("\n\n")[0].strip()
    first = re.split(r"\W", summary, maxsplit=1)[0].lower()
    if first in (_NO_VERB if text.kind == "function" else _NOT_FIRST) and text.kind != "module":
        yield ("R2" if first == "whether" else "R1"), text.text.partition("\n\n")[0]
    if text.kind in ("function", "noun") and len(prose.split()) < MIN_WORDS:
        yield "R7", text.text
    for sentence in _sentences(prose):
        if ";" in sentence:
            yield "R4", f"semicolon: {sentence}"
        elif len(sentence.split()) > MAX_WORDS:
            yield "R4", f"{len(sentence.split())} words: {sentence}"


def _sentences(prose: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", prose):
        lines = [line for line in paragraph.splitlines() if not _SECTION.match(line.strip())]
        if any(re.match(r"\s*(\* |- |\||├|│|└|\d+\. | {4}\S)", line) for line in lines):
            continue  # lists, tables and trees
        parts = re.split(r"(?<=[.!?:])\s+", " ".join(" ".join(lines).split()))
        yield from (part for part in parts if part)


def of_module(path: Path) -> Iterator[Finding]:
    """Yield the findings of a Python file."""
    name = path.resolve().relative_to(ROOT)
    for text in texts(path.read_text(encoding="utf-8")):
        for rule, sentence in of_text(text):
            yield Finding(rule, f"{name}:{text.line}", " ".join(sentence.split()))


def of_page(path: Path, *, is_of_figures: bool = False) -> Iterator[Finding]:
    """Yield the findings of a Markdown page; a page of figures may have dates."""
    name = path.resolve().relative_to(ROOT)
    prose = _CODE.sub(
        lambda code: "\n" * code[0].count("\n") or "x", path.read_text(encoding="utf-8")
    )
    for number, line in enumerate(prose.splitlines(), 1):
        for found in _PEOPLE.finditer(line):
            yield Finding(
                "R5", f"{name}:{number}", line[max(0, found.start() - 40) : found.end() + 40]
            )
        for found in () if is_of_figures else _DIARY.finditer(line):
            yield Finding(
                "R9", f"{name}:{number}", line[max(0, found.start() - 40) : found.end() + 40]
            )


def of_paths(paths: Iterable[Path]) -> Iterator[Finding]:
    """Yield the findings of files and of all files in folders."""
    for path in paths:
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for file in files:
            if not re.search(r"_pb2|/tests/|/test_", str(file)):
                yield from of_page(file) if file.suffix == ".md" else of_module(file)


if __name__ == "__main__":
    findings = list(of_paths(map(Path, sys.argv[1:] or ("reliable_channel", "waku"))))
    for finding in findings:
        print(finding.place, finding.rule, finding.text)
    print(dict(Counter(finding.rule for finding in findings)))
