"""The defects that are planted: one changed place in the body of a function.

Messages of errors, docstrings, asserts and type hints are left alone: no test has to notice those.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
UNTOUCHED: Final = (ast.Assert, ast.Raise, ast.JoinedStr, ast.FunctionDef, ast.AsyncFunctionDef)
UNTESTED_FUNCTIONS: Final = ("__repr__", "__str__")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """A function with one defect."""

    function: str
    """Its qualified name."""
    line: int
    change: str
    whole: Function
    """The function without the defect."""
    place: int
    """Which of its places is changed."""
    which: int
    """Which of the changes of that place."""

    @property
    def node(self) -> Function:
        """The function with the defect, made anew each time: of thousands few are planted."""
        copy = deepcopy(self.whole)
        old = list(_places(copy))[self.place]
        _, new = list(_changes(old))[self.which]
        _replace(copy, old, new)
        return copy


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """The functions and methods of a module, without those inside of others."""
    return _functions("", tree.body)


def _functions(scope: str, body: list[ast.stmt]) -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, Function):
            yield scope + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(f"{scope}{node.name}.", node.body)


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    """All defects of a module, in the order of its lines."""
    for name, function in functions(tree):
        if function.name in UNTESTED_FUNCTIONS:
            continue
        for number, place in enumerate(_places(function)):
            line = getattr(place, "lineno", function.lineno)
            for which, (text, _) in enumerate(_changes(place)):
                yield Mutant(name, line, text, function, number, which)


def _places(function: Function) -> Iterator[ast.AST]:
    """What can be changed: the body without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.AnnAssign):
            pending.extend([node.value] if node.value is not None else [])
        elif not isinstance(node, UNTOUCHED):
            pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The defects of one place: what is written, and what is planted."""
    match node:
        case ast.Compare(ops=[op]):
            yield _change(node, ast.Compare(node.left, [COMPARISONS[type(op)]()], node.comparators))
        case ast.BoolOp(op=ast.And()):
            yield _change(node, ast.BoolOp(ast.Or(), node.values))
        case ast.BoolOp(op=ast.Or()):
            yield _change(node, ast.BoolOp(ast.And(), node.values))
        case ast.UnaryOp(op=ast.Not()):
            yield _change(node, node.operand)
        case ast.BinOp() if type(node.op) in ARITHMETIC:
            yield _change(node, ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right))
        case ast.Constant(value=bool()):
            yield _change(node, ast.Constant(not node.value))
        case ast.Constant(value=int(number)):
            yield _change(node, ast.Constant(number + 1))
        case ast.If() | ast.While() if isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
            kind = type(node)
            turned = ast.UnaryOp(ast.Not(), node.test)
            yield (
                f"{ast.unparse(node.test)} → {ast.unparse(turned)}",
                kind(turned, node.body, node.orelse),
            )
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield _change(node, ast.Return(ast.Constant(None)))
        case ast.Continue():
            yield _change(node, ast.Break())
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Delete():
            yield _change(node, ast.Pass())
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield _change(node, ast.Pass())
        case ast.AugAssign():
            yield _change(node, ast.Pass())
            if type(node.op) in ARITHMETIC:
                other = ARITHMETIC[type(node.op)]()
                yield _change(node, ast.AugAssign(node.target, other, node.value))


def _change(before: ast.AST, after: ast.AST) -> tuple[str, ast.AST]:
    return f"{_shown(before)} → {_shown(after)}", after


def _shown(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:70]


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _replace(root: ast.AST, old: ast.AST, new: ast.AST) -> None:
    """Put a node into the place of another one."""
    ast.copy_location(new, old)
    for parent in ast.walk(root):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list):
                value[:] = [new if each is old else each for each in value]
    ast.fix_missing_locations(root)
