"""Which tests to run after touching a module: the tree of the tests mirrors that of the code.

`a/b.py` is tested by `a/test_b.py` or the folder `a/b/`, below the folder in which the tests of its
package stand; a plugin's are the package `<plugin>_tests` beside its code. What is tested elsewhere
stands in `mirror.toml`, with a reason.

`python -m tests.mirror` checks this (`make lint`); with paths it prints their tests
(`make quick FILE=reliable_channel/sds/bloom.py`).
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple, Self

ROOT: Final = Path(__file__).parents[1]
TABLE: Final = "tests/mirror.toml"
NOT_TESTED: Final = ("__init__.py", "__main__.py", "_version.py", "*_pb2.py")


class Package(NamedTuple):
    """Code, and where its tests stand."""

    code: Path
    tests: Path

    def own_tests(self, module: Path) -> list[Path]:
        """The tests that a module has by its name."""
        *folders, name = module.relative_to(self.code).with_suffix("").parts
        name = name.removeprefix("_")
        folder = self.tests.joinpath(*folders)
        return [found for found in (folder / f"test_{name}.py", folder / name) if found.exists()]

    def modules(self) -> Iterator[Path]:
        """What is to be tested."""
        for module in sorted(self.code.rglob("*.py")):
            if not any(fnmatch(module.name, pattern) for pattern in NOT_TESTED):
                yield module


class Elsewhere(NamedTuple):
    """Modules that are tested by files of other names."""

    tests: str
    modules: tuple[str, ...]
    """Patterns of paths below the root."""


class Mirror:
    """The tree of a project, and its table of exceptions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        table = tomllib.loads((root / TABLE).read_text())
        self._across: dict[str, str] = table["across"]
        self._elsewhere = [
            Elsewhere(tests, tuple(f"{group['code']}/{module}.py" for module in modules))
            for group in table["elsewhere"]
            for tests, modules in group["tests"].items()
        ]
        self._packages = list(self._find_packages())

    @classmethod
    def of_project(cls) -> Self:
        """The tree that this file is in."""
        return cls(ROOT)

    def tests_of(self, module: Path) -> list[Path]:
        """Which files and folders test a module."""
        package = next(p for p in self._packages if module.is_relative_to(p.code))
        own = package.own_tests(module)
        return own or [self.root / each.tests for each in self._matching(module)]

    def modules(self) -> Iterator[Path]:
        """Yield what is to be tested."""
        for package in self._packages:
            yield from package.modules()

    def problems(self) -> Iterator[str]:
        """What is against the rule, one line each."""
        used: set[str] = set()
        for package in self._packages:
            for module in package.modules():
                entries = [] if package.own_tests(module) else self._matching(module)
                used.update(self._patterns_of(module, entries))
                if not entries and not package.own_tests(module):
                    yield (
                        f"{self._name(module)}: nothing mirrors it; "
                        f"add its tests, or an entry to {TABLE}"
                    )
        for each in self._elsewhere:
            if not (self.root / each.tests).exists():
                yield f"{TABLE}: {each.tests} does not exist"
            for pattern in each.modules:
                if f"{each.tests} {pattern}" not in used:
                    yield f"{TABLE}: {pattern} needs no entry, or is gone; remove it"
        yield from self._folders_without_code()

    def _folders_without_code(self) -> Iterator[str]:
        trees = {self.root / "tests", *(package.tests for package in self._packages)}
        mirrored = {self.root / "tests/plugins", *trees}
        for package in self._packages:
            for module in package.code.rglob("*.py"):
                folder = package.tests / module.parent.relative_to(package.code)
                mirrored.update((folder, folder / module.stem))
        for folder in sorted({file.parent for tree in trees for file in tree.rglob("__init__.py")}):
            name = self._name(folder)
            if folder not in mirrored and not any(
                name == across or name.startswith(f"{across}/") for across in self._across
            ):
                yield f"{name}: mirrors no code; move it, or add it to `across` in {TABLE}"
        for across in self._across:
            if not (self.root / across).is_dir():
                yield f"{TABLE}: {across} does not exist"

    def _find_packages(self) -> Iterator[Package]:
        tests = self.root / "tests"
        for name, place in (("reliable_channel", tests), ("waku", tests / "waku")):
            yield Package(self.root / name, place)
        for own in sorted(self.root.glob("plugins/*/*_tests")):
            yield Package(own.parent / own.parent.name, own)

    def _matching(self, module: Path) -> list[Elsewhere]:
        return [each for each in self._elsewhere if any(self._patterns_of(module, [each]))]

    def _patterns_of(self, module: Path, entries: Iterable[Elsewhere]) -> Iterator[str]:
        for each in entries:
            for pattern in each.modules:
                if fnmatch(self._name(module), pattern):
                    yield f"{each.tests} {pattern}"

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def main(paths: list[str]) -> int:
    mirror = Mirror.of_project()
    if paths:
        found = [test for path in paths for test in mirror.tests_of(Path(path).resolve())]
        print(*dict.fromkeys(test.relative_to(ROOT).as_posix() for test in found))
        return 0 if found else 1
    problems = list(mirror.problems())
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
