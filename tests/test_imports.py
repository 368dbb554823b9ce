"""What it costs to open a channel, counted in modules: each of these is loaded when it is used."""

import subprocess
import sys

import pytest

HEAVY = {
    "Crypto",
    "click",
    "cryptography",
    "decimal",
    "difflib",
    "filelock",
    "gzip",
    "http",
    "httpx",
    "importlib.metadata",
    "pyspark",
    "reliable_channel.cli",
    "reliable_channel.config",
    "reliable_channel.hub",
    "reliable_channel.runtime.journal",
    "reliable_channel.sds.adaptive.reconciliation",
    "reliable_channel.sds.adaptive.tuner",
    "reliable_channel.transport.multicast",
    "reliable_channel.transport.waku",
    "rich",
    "sqlite3",
    "tenacity",
    "typer",
    "urllib.request",
    "uvicorn",
    "waku.client",
    "waku.models",
    "waku.node",
    "websockets",
}
FINDING_PLUGINS = {"importlib.metadata"}
OPEN = """
import anyio
from reliable_channel import ReliableChannel

async def main():
    async with ReliableChannel("memory://imports", channel_id="c", sender_id="alice"):
        pass

anyio.run(main)
"""


def loaded(program: str, plugins: str = "none") -> set[str]:
    """The modules that a program has loaded in the end."""
    done = subprocess.run(
        [sys.executable, "-c", program + "\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        env={"RELIABLE_CHANNEL_PLUGINS": plugins},
    )
    assert not done.returncode, done.stderr
    return set(done.stdout.split())


def test_opening_a_channel_in_memory_loads_nothing_for_other_channels() -> None:
    modules = loaded(OPEN)
    assert "reliable_channel.runtime" in modules
    assert modules & HEAVY == set()


@pytest.mark.parametrize("package", ["reliable_channel", "waku"])
def test_importing_a_package_loads_none_of_its_rooms(package: str) -> None:
    ours = {name for name in loaded(f"import {package}") if name.startswith(package + ".")}
    assert ours <= {"reliable_channel._version"}


@pytest.mark.parametrize("name", ["sds", "state", "transport"])
def test_lazy_packages_have_what_they_promise(name: str) -> None:
    program = f"import reliable_channel.{name} as room; assert dir(room) == sorted(room.__all__); "
    modules = loaded(program + "print(*[getattr(room, name) is None for name in room.__all__])")
    assert "True" not in modules


PLUGINS = (
    *("audit", "conformance", "encryption", "lab", "metrics", "moderation"),
    *("mvds", "status", "svs", "watch"),
)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_loading_a_plugin_loads_nothing_of_what_it_provides(plugin: str) -> None:
    modules = loaded(f"import reliable_channel_{plugin}.plugin")
    ours = {name for name in modules if name.startswith(f"reliable_channel_{plugin}.")}
    assert ours == {f"reliable_channel_{plugin}.plugin"}
    assert modules & HEAVY == set()


def test_opening_a_channel_with_all_plugins_installed_loads_as_little() -> None:
    assert loaded(OPEN, ",".join(PLUGINS)) & HEAVY <= FINDING_PLUGINS
