"""The unit file: systemd accepts it, the page shows it, and SIGTERM ends its command in order."""

import configparser
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "reliable-channel-node.service"


def command() -> list[str]:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT.read_text())
    return unit["Service"]["ExecStart"].split()


def test_the_page_shows_the_unit() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    shown = re.search(r"```ini\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    assert UNIT.read_text().endswith(shown[1])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("reliable-channel")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace(command()[0], str(program)))
    done = subprocess.run(("systemd-analyze", "verify", copy), capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert complaints == [] and done.returncode == 0, done.stderr


def test_its_command_ends_in_order_at_sigterm(tmp_path: Path) -> None:
    _, *arguments = command()
    given = [one.replace("/var/lib/reliable-channel", str(tmp_path)) for one in arguments]
    given[given.index("--port") + 1] = "0"
    program = Path(sys.executable).with_name("reliable-channel")
    with subprocess.Popen((program, *given), stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        assert node.stdout.readline().startswith("listening on ")
        node.send_signal(signal.SIGTERM)
        assert node.wait() == 0
    assert (tmp_path / "store.db").exists()
