"""The image of deploy/Dockerfile, built by a Docker engine without a registry.

Its base is made from this machine, as the images of the bench are: the Python that runs this, a
shell, `useradd`, and that with which pip works here.
"""

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Final

import docker

from ..go_build import BUILT, ROOT
from ..waku.rootfs import RootFs

REPOSITORY: Final = "reliable-channel-deploy"
OF_PIP: Final = ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
"""Files with which pip works here, where they exist."""


def build(client: docker.DockerClient) -> str:
    """Build the image of this tree, and return its tag."""
    base = f"{REPOSITORY}:base"
    root = RootFs(BUILT / "deploy-base")
    changes = _base(root)
    archive = root.tar()
    client.api.import_image_from_file(
        str(archive), repository=REPOSITORY, tag="base", changes=changes
    )
    archive.unlink()
    shutil.rmtree(root.root)
    tag = f"{REPOSITORY}:tree"
    client.images.build(
        path=str(ROOT),
        dockerfile="deploy/Dockerfile",
        buildargs={"BASE": base},
        tag=tag,
        network_mode="host",  # our engine has no bridge that reaches a package index
        forcerm=True,
    )
    return tag


def _base(root: RootFs) -> list[str]:
    program = root.add_python()
    stdlib = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(stdlib / "ensurepip", root.root / str(stdlib / "ensurepip").lstrip("/"))
    for name, inside in (("sh", "/bin/sh"), ("useradd", "/usr/sbin/useradd")):
        found = shutil.which(name, path="/bin:/usr/sbin:/usr/bin")
        assert found is not None, f"there is no {name}"
        root.add_program(Path(found), inside)
    # libgcc, which every Linux has, and wheels of Rust load.
    root.add_libraries(Path(sysconfig.get_path("platlib"), "pydantic_core").glob("*.so"))
    for folder in ("usr/bin", "var/lib"):
        (root.root / folder).mkdir(parents=True, exist_ok=True)
    (root.root / "usr/bin/python3").symlink_to(program)
    for file in map(Path, OF_PIP):
        if file.exists():
            root.add(file, str(file))
    settings = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    settings.pop("PIP_FIND_LINKS", None)  # folders of this machine
    settings["PATH"] = "/usr/bin:/usr/sbin:/bin"
    return [f'ENV {name}="{text}"' for name, text in settings.items()]
