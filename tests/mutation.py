"""Plant small defects in the core, one at a time: which ones do its tests miss?

`python -m tests.mutation [--sample N] [--seed S]`, or `make hunt WHAT=mutation`. Asserts, hints and
texts of errors are left alone. The tests that mirror a module run first, then those of its package.
"""

import argparse
import ast
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from importlib.machinery import SourceFileLoader
from itertools import islice
from random import Random
from typing import Any

import pytest

from tests.mirror import ROOT, Mirror

FOLDERS = ("reliable_channel/sds", "reliable_channel/engine")
LIMITS = {resource.RLIMIT_CPU: 120, resource.RLIMIT_AS: 4 << 30}  # for a defect that never ends
LIMIT_ALONE_S = 20
"""For the tests that mirror one module, which take seconds."""
PAIRS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, Add Sub, Mult FloorDiv, And Or"
Loader: Any = SourceFileLoader
SWAPS = {one: two for pair in PAIRS.split(", ") for one, two in (pair.split(), pair.split()[::-1])}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def defects(node: ast.AST) -> Iterator[ast.AST]:
    """Generate what can stand in the place of a node."""
    match node:
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.Compare(ops=[op]):
            other = getattr(ast, SWAPS.get(type(op).__name__, type(op).__name__))()
            new: Any = copy(node)
            new.op, new.ops = other, [other]
            yield new
        case ast.Constant(value=bool() | int() as value):
            yield ast.Constant(not value if isinstance(value, bool) else value + 1)
        case ast.UnaryOp(op=ast.Not()):
            yield copy(node.operand)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Delete():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


def places(node: ast.AST) -> Iterator[Any]:
    """Generate the nodes of a statement that can be changed."""
    if not isinstance(node, (ast.Assert, ast.JoinedStr, ast.arguments, *FUNCTIONS)):
        yield node
        for child in [] if isinstance(node, ast.Raise) else ast.iter_child_nodes(node):
            if child is not getattr(node, "annotation", None):
                yield from places(child)


def planted(tree: ast.AST) -> Iterator[str]:
    """Plant each defect of a module in turn: it stays until the next one is asked for."""
    bodies = [each.body for each in ast.walk(tree) if isinstance(each, FUNCTIONS)]
    for node in [place for body in bodies for one in body for place in places(one)]:
        old = copy(node)
        for new in defects(old):
            before, after = (" ".join(ast.unparse(one).split())[:70] for one in (old, new))
            if before != after:
                node.__class__, node.__dict__ = type(new), {**vars(old), **vars(new)}
                ast.fix_missing_locations(node)
                yield f"{old.lineno}: {before} → {after}"
        node.__class__, node.__dict__ = type(old), vars(old)


def run_tests(module: str, number: int, alone: bool) -> int:
    """Run the tests of a module that has the defect with this number, in this process; `alone`, no
    others of its package."""
    tree, path, load = ast.parse((ROOT / module).read_text()), str(ROOT / module), Loader.get_code
    next(islice(planted(tree), number, None), None)
    code = compile(tree, path, "exec")
    Loader.get_code = lambda me, name: code if me.path == path else load(me, name)
    for kind, limit in (LIMITS | ({resource.RLIMIT_CPU: LIMIT_ALONE_S} if alone else {})).items():
        resource.setrlimit(kind, (limit, limit))
    tests = Mirror.of_project().tests_of(ROOT / module)
    tests += [] if alone else [ROOT / "tests" / module.split("/")[1]]
    flags = ("-qx", "-m", "not slow", "-p", "no:xdist", "-p", "no:cacheprovider")
    return pytest.main([*flags, "--hypothesis-profile=ci", *map(str, tests)])


def passes(module: str, number: int, alone: bool) -> bool:
    """Run the tests of a module with a defect in a process of their own."""
    command = [sys.executable, "-m", "tests.mutation", "--plant", module, str(number)]
    command += ["--alone"] if alone else []
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def noticed(sample: int | None, seed: int, alone: bool = False) -> float:
    """Print the defects that no test notices; return the others in percent."""
    core = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*[!2].py"))]
    trees = [(str(path.relative_to(ROOT)), ast.parse(path.read_text())) for path in core]
    every = [(m, number, text) for m, tree in trees for number, text in enumerate(planted(tree))]
    drawn = Random(seed).sample(every, sample or len(every))
    print(f"{len(drawn)} of {len(every)} defects, seed {seed}", flush=True)
    assert passes(drawn[0][0], len(every), alone), "the tests fail without a defect"
    survivors = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        passed = pool.map(lambda one: passes(one[0], one[1], alone), drawn)
        for (m, number, text), survives in zip(drawn, passed, strict=True):
            if survives:
                survivors += 1
                print(f"survives: {m}:{text} (--plant {m} {number})", flush=True)
    return 100 - 100 * survivors / len(drawn)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, help="plant so many defects, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="decides which")
    parser.add_argument("--plant", nargs=2, help="plant this one, and show what its tests print")
    parser.add_argument("--alone", action="store_true", help="run the tests of its module alone")
    given = parser.parse_args()
    if given.plant:
        sys.exit(run_tests(given.plant[0], int(given.plant[1]), given.alone))
    print(f"{noticed(given.sample, given.seed, given.alone):.1f} % noticed")
