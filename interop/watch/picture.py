"""The picture in docs/how-to/watch.md, of the journals of a demo:

reliable-channel demo --seed 1 --journals journals
python -m interop.watch.picture journals docs/how-to/watch.png
"""

import os
import subprocess
import sys
from pathlib import Path

from ..browser.test_interop_browser import browser
from .headless import visited


def main() -> None:
    """Serve the journals, go back in time, and take the picture."""
    journals, picture = sys.argv[1:]
    command = [sys.executable, "-m", "reliable_channel", "watch", journals, "--web"]
    environment = os.environ | {"RELIABLE_CHANNEL_PLUGINS": "watch"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as served:
        try:
            assert served.stdout is not None
            url = served.stdout.readline().removeprefix("open ").strip()
            visited("use.mjs", browser(), url, str(Path(picture).resolve()))
        finally:
            served.terminate()


if __name__ == "__main__":
    main()
