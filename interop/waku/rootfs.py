"""Root file systems from what this machine runs: programs, and the libraries that they load."""

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from compileall import compile_dir
from pathlib import Path
from typing import Final

TIMEOUT_S: Final = 600
LIBRARY: Final = re.compile(r"(?:=> )?(/\S+) \(0x")
NOT_NEEDED: Final = {
    *("site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "ensurepip"),
    *("tkinter", "turtledemo", "pydoc_data", "distutils"),
}
"""Of Python's standard library; with its tests it is five times as large."""


class RootFs:
    """A directory that becomes an image."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        for folder in ("tmp", "etc", "proc", "sys", "dev", "data"):
            (root / folder).mkdir(parents=True)
        (root / "etc/passwd").write_text("root:x:0:0:root:/data:/bin/false\n")
        (root / "etc/group").write_text("root:x:0:\n")
        (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")

    def add(self, source: Path, inside: str) -> Path:
        """Copy a file there, links resolved."""
        target = self.root / inside.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source.resolve(), target)
        return target

    def add_program(self, source: Path, inside: str) -> None:
        """Copy a program or an extension there, and the shared libraries that it loads."""
        self.add(source, inside).chmod(0o755)
        self.add_libraries([source])

    def add_python(self) -> str:
        """Copy the Python that runs this, and say where its program is inside."""
        stdlib = Path(sysconfig.get_path("stdlib"))
        shutil.copytree(
            stdlib,
            self.root / str(stdlib).lstrip("/"),
            ignore=lambda _, names: [
                n for n in names if n in NOT_NEEDED or n.startswith("config-")
            ],
        )
        program = Path(sys.executable).resolve()
        self.add_program(program, str(program))
        self.add_libraries((stdlib / "lib-dynload").glob("*.so"))
        return str(program)

    def add_requirements(self, inside: str, *arguments: str) -> None:
        """Install Python packages there, compiled, so that containers start at once."""
        target = self.root / inside.lstrip("/")
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "--no-deps", "--no-compile", "--target", str(target), *arguments)
        compile_dir(target, quiet=1, stripdir=str(self.root), prependdir="/")
        self.add_libraries(target.rglob("*.so"))

    def tar(self) -> Path:
        """All of it as one archive."""
        archive = self.root.with_suffix(".tar")
        with tarfile.open(archive, "w") as tar:
            tar.add(self.root, ".")
        return archive

    def add_libraries(self, programs: Iterable[Path]) -> None:
        for program in programs:
            listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True)
            for found in LIBRARY.findall(listed.stdout):
                if not (self.root / found.lstrip("/")).exists():
                    self.add(Path(found), found)


def run(*command: str, cwd: Path | None = None) -> None:
    """Run a program of the build; its own words are the error's."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode:
        words = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"{' '.join(command[:4])}: {words[-500:]}")
