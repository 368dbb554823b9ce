"""A module in whose functions defects are planted, while it is loaded.

A function keeps its identity: its code is replaced, so that those find it that imported it by name.
The code counts its steps: entries of functions and iterations of loops. So it is known which
tests reach a function, and a defect that never ends is found without a clock.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Self

from .operators import Function, Mutant, functions, mutants

STEP = "__step__"
"""The name of the counter in the module."""
Loop = ast.For | ast.AsyncFor | ast.While


class Target:
    """One module."""

    def __init__(self, path: Path, root: Path, loaded: Sequence[FunctionType] = ()) -> None:
        """`loaded` are all functions that there are, where they were looked for before."""
        self.path = path.relative_to(root)
        self._tree = ast.parse(path.read_text())
        self._module = _module(path, root)
        self._file = self._module.__file__ or ""
        self._live: dict[str, list[FunctionType]] = {}
        for each in loaded or _loaded():
            if each.__code__.co_filename == self._file:
                self._live.setdefault(each.__code__.co_qualname, []).append(each)

    @classmethod
    def load(cls, paths: Sequence[Path], root: Path) -> list[Self]:
        """Several modules: their functions are looked for once, among a million objects."""
        for path in paths:
            _module(path, root)
        loaded = _loaded()
        return [cls(path, root, loaded) for path in paths]

    def mutants(self) -> Iterator[Mutant]:
        """Every defect in a function that is loaded."""
        return (each for each in mutants(self._tree) if each.function in self._live)

    def count(self, step: Callable[[str], None]) -> None:
        """Call `step` with the module's path and the function's name, for each step from now on."""
        setattr(self._module, STEP, step)
        for name, function in functions(self._tree):
            self._set(name, function)

    def plant(self, mutant: Mutant) -> None:
        """Plant a defect. There is no way back but the end of the process."""
        self._set(mutant.function, mutant.node)

    def key(self, function: str) -> str:
        """What the counter is called with."""
        return f"{self.path}::{function}"

    def _set(self, name: str, function: Function) -> None:
        counted = _Counting(self.key(name)).visit(ast.parse(ast.unparse(function)).body[0])
        for scope in reversed(name.split(".")[:-1]):
            counted = ast.ClassDef(scope, bases=[], keywords=[], body=[counted], decorator_list=[])
        future = ast.parse("from __future__ import annotations").body
        module = ast.Module(body=[*future, counted], type_ignores=[])
        code = compile(ast.fix_missing_locations(module), self._file, "exec")
        found = _code_of(code, name)
        for live in self._live.get(name, ()):
            live.__code__ = found  # raises ValueError where it closes over other names


def _module(path: Path, root: Path) -> ModuleType:
    return import_module(".".join(path.relative_to(root).with_suffix("").parts))


def _loaded() -> list[FunctionType]:
    return [each for each in gc.get_objects() if isinstance(each, FunctionType)]


class _Counting(ast.NodeTransformer):
    """Puts a step at the beginning of each function and of each loop's body."""

    def __init__(self, key: str) -> None:
        self._key = key

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._counted(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._counted(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._counted(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return self._counted(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._counted(node)

    def _counted(self, node: Function | Loop) -> ast.AST:
        self.generic_visit(node)
        step = ast.Call(ast.Name(STEP, ast.Load()), [ast.Constant(self._key)], [])
        node.body.insert(0, ast.Expr(step))
        return node


def _code_of(code: CodeType, name: str) -> CodeType:
    """The code of a function, by its qualified name."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_qualname == name:
                return each
            if name.startswith(f"{each.co_qualname}."):
                return _code_of(each, name)
    raise LookupError(f"no function {name}")
