"""The unit files: systemd accepts them, and the page shows what is to be changed in them."""

import configparser
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy").glob("*.service"))
MAX_EXPOSURE = 3.0
"""Of 10, as `systemd-analyze security` counts; a unit without any protection has 9.6."""
each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
with_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed"
)


def command(file: Path) -> list[str]:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(file.read_text(encoding="utf-8"))
    return unit["Service"]["ExecStart"].split()


def test_the_page_shows_what_is_to_be_changed() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    shown = re.search(r"```ini\n(.*?)```", page, re.DOTALL)
    assert shown is not None and len(UNITS) == 2
    assert shown[1] in (ROOT / "deploy" / "reliable-channel-bot.service").read_text(
        encoding="utf-8"
    )
    assert all(unit.name in page for unit in UNITS)


@with_systemd
@each_unit
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace(command(unit)[0], sys.executable))
    done = subprocess.run(("systemd-analyze", "verify", copy), capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if unit.name in line]
    assert complaints == [] and done.returncode == 0, done.stderr


@with_systemd
@each_unit
def test_the_unit_is_locked_down(unit: Path) -> None:
    judged = subprocess.run(
        ("systemd-analyze", "security", "--offline=true", unit), capture_output=True, text=True
    )
    exposure = re.search(r"exposure level for \S+: ([\d.]+)", judged.stdout)
    assert exposure is not None, judged.stderr
    assert float(exposure[1]) < MAX_EXPOSURE


def test_the_node_ends_in_order_at_sigterm(tmp_path: Path) -> None:
    [unit] = [unit for unit in UNITS if unit.stem.endswith("node")]
    _, *arguments = command(unit)
    given = [one.replace("/var/lib/reliable-channel-node", str(tmp_path)) for one in arguments]
    given[given.index("--port") + 1] = "0"
    program = Path(sys.executable).with_name("reliable-channel")
    with subprocess.Popen((program, *given), stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        assert node.stdout.readline().startswith("listening on ")
        node.send_signal(signal.SIGTERM)
        assert node.wait() == 0
    assert (tmp_path / "store.db").exists()
