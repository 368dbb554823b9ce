"""What the stranger's hour needs in a container is there, without any package of this machine."""

import subprocess
import sys
from pathlib import Path

from release.container import copied_steps


def test_the_pages_can_be_followed_with_python_alone(tmp_path: Path) -> None:
    folder = copied_steps(tmp_path / "steps")
    program = (
        "from release.stranger import PAGES, main, sections; import sys; from pathlib import Path\n"
    )
    program += "assert all(sections((Path('docs') / page).read_text()) for page in PAGES)\n"
    program += "sys.argv[1:] = ['--help']; main()"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "--container" in done.stdout
    assert not (folder / "reliable_channel").exists()
