"""The stranger's hour in a bare container: a minimal Debian with Python, and nothing of this tree.

The base is made by mmdebstrap from the package sources of this machine, once, and kept as an image
of a Docker engine: one that runs, or one that is started as for `make interop`. The container has
the pages, what types them, and the wheels, all read-only; pip installs over the host's network.
"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import docker
from docker.errors import ImageNotFound

from interop.debian import debian_program
from interop.waku.engine import ensure, hold, stop_if_unused
from release.building import ROOT

IMAGE: Final = "reliable-channel-stranger"
PACKAGES: Final = ("ca-certificates", "curl", "procps", "python3", "python3-venv")
"""Beside what no Debian does without; the pages type `curl`, and terminals are watched by `ps`."""
STEPS: Final = ("docs", "release", "requirements", "tests/docs", "tests/__init__.py")
TYPING: Final = ("pexpect", "ptyprocess")
"""What types into terminals; pages do not see it."""
SOURCES: Final = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
OF_PIP: Final = ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
"""Files with which pip works here, where they exist."""


def run_in_container(dist: Path) -> int:
    """Follow the pages with these wheels in a new container; returns the exit status.

    Raises:
        ProgramUnavailable, EngineUnavailable: this is not root on Debian; the text says what lacks.
        CalledProcessError: the base cannot be made.
    """
    address = ensure()
    held = hold()
    client = docker.DockerClient(base_url=address)
    try:
        with tempfile.TemporaryDirectory(prefix="reliable-channel-container-") as work:
            image = _image(client, Path(work))
            return _run(client, image, copied_steps(Path(work) / "steps"), dist)
    finally:
        client.close()
        stop_if_unused(held)


def copied_steps(folder: Path) -> Path:
    """Copy the pages and what follows them to a folder, and return it."""
    for name in STEPS:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / name, target)
    for name in TYPING:
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None
        shutil.copytree(Path(found.origin).parent, folder / name)
    return folder


def _image(client: Any, work: Path) -> str:
    """The tag of the base, which is made if this engine has none of this Debian."""
    tag = f"{IMAGE}:{platform.freedesktop_os_release()['VERSION_CODENAME']}"
    try:
        client.images.get(tag)
    except ImageNotFound:
        print(f"making {tag} (once; some minutes)", flush=True)
        sources = next(file for file in SOURCES if Path(file).exists())
        base = work / "base.tar"
        include = f"--include={','.join(PACKAGES)}"
        program = debian_program("mmdebstrap")
        subprocess.run(
            [program, "--quiet", "--variant=minbase", include, "", str(base), sources], check=True
        )
        client.api.import_image_from_file(str(base), *tag.split(":"))
    return tag


def _run(client: Any, image: str, steps: Path, dist: Path) -> int:
    mounts = {str(steps): "/steps", str(dist): "/dist"}
    mounts |= {file: file for file in OF_PIP if Path(file).exists()}
    settings = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    settings.pop("PIP_FIND_LINKS", None)  # folders of this machine
    container = client.containers.run(
        image,
        ["python3", "-m", "release.stranger", "--dist", "/dist"],
        environment={**settings, "PYTHONPATH": "/steps", "LANG": "C.UTF-8"},
        volumes={place: {"bind": inside, "mode": "ro"} for place, inside in mounts.items()},
        network_mode="host",  # the engine of `make interop` has no other way to a package index
        init=True,
        detach=True,
    )
    try:
        for printed in container.logs(stream=True, follow=True):
            sys.stdout.write(printed.decode(errors="replace"))
            sys.stdout.flush()
        return int(container.wait()["StatusCode"])
    finally:
        container.remove(force=True)
