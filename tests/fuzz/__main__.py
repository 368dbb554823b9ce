"""Fuzz every decoder: `FUZZ_SECONDS=60 make hunt WHAT=fuzz ARGS="sds_spec bloom"`.

The time is shared out among the targets. A failing input stays in `.fuzz/<target>/`, is printed
with the command that gives it to the target again (`--replay FILE`), and belongs, once mended, into
a unit test. `--keep` puts what was found, minimised, into the corpus that the test suite replays.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from .corpus import keep, starting_points
from .target import MAX_INPUT_BYTES, Target
from .targets import TARGETS

ROOT: Final = Path(__file__).parents[2]
WORK: Final = ROOT / ".fuzz"
REST: Final = "node_rest"
SECONDS: Final = 600
SIZE: Final = f"-max_len={MAX_INPUT_BYTES}"
TIMEOUT_S: Final = 10
"""An input that takes longer counts as a hang; the slowest honest one takes a few milliseconds."""
MEMORY_MB: Final = 2048
SPARE_S: Final = 600
"""What a search may take beyond its time, for starting and for its last input."""


def main() -> int:
    """Run what the arguments name; 1 if anything was found."""
    arguments = _arguments()
    if arguments.replay:
        TARGETS[arguments.targets[0]].check(arguments.replay.read_bytes())
        print("nothing happens")
        return 0
    if find_spec("atheris") is None:
        raise SystemExit("error: atheris is not installed; it has wheels for Linux on x86-64 alone")
    names: list[str] = arguments.targets or [*TARGETS, REST]
    seconds = max(1, int(os.environ.get("FUZZ_SECONDS", SECONDS)) // len(names))
    executions = failed = 0
    for name in names:
        done, output = _rest(seconds) if name == REST else _search(name, seconds)
        executions += done or 0
        failed += done is None
        print(f"{name:<16} {'failed' if done is None else f'{done:>9,} inputs'}", flush=True)
        if done is None:
            print(output)
            _show_failures(name)
        elif arguments.keep and name != REST:
            _keep(TARGETS[name])
    print(f"{executions:,} inputs in {seconds * len(names)} s, {failed} of {len(names)} failed")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, REST, []], metavar="TARGET")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="give one input to a target")
    parser.add_argument("--keep", action="store_true", help="keep what was found, minimised")
    return parser.parse_args()


def _search(name: str, seconds: int) -> tuple[int | None, str]:
    """Search one target; return how many inputs were tried, or None and what it says."""
    target, folder = TARGETS[name], WORK / name
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    for data in starting_points(target):
        (folder / "corpus" / sha1(data).hexdigest()).write_bytes(data)
    for failed in folder.glob("*-*"):  # an earlier finding is tried again, before all else
        failed.rename(folder / "corpus" / failed.name)
    words = folder / "words"
    words.write_text("".join(map(_entry, target.words)))
    limits = [f"-max_total_time={seconds}", f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={MEMORY_MB}"]
    output = [f"-artifact_prefix={folder}/", "-print_final_stats=1", "-verbosity=0"]
    inputs = [SIZE, *([f"-dict={words}"] if target.words else []), str(folder / "corpus")]
    ended, text = _run([f"{__package__}.search", name, *limits, *output, *inputs], seconds)
    counts = re.findall(r"number_of_executed_units: *(\d+)", text)
    if ended or not counts or list(folder.glob("*-*")):
        return None, text[-4000:]
    return int(counts[-1]), text


def _entry(word: bytes) -> str:
    """A line of libFuzzer's dictionaries."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


def _rest(seconds: int) -> tuple[int | None, str]:
    """Ask a running node what its description allows, and more."""
    ended, output = _run([f"{__package__}.rest", str(seconds)], seconds)
    counts = re.findall(r"(\d+) requests", output)
    return (None, output[-4000:]) if ended or not counts else (int(counts[-1]), output)


def _run(arguments: list[str], seconds: int) -> tuple[int, str]:
    try:
        run = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds + SPARE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"{arguments} did not end within {seconds + SPARE_S} s"
    return run.returncode, run.stdout


def _show_failures(name: str) -> None:
    for file in sorted((WORK / name).glob("*-*")):
        print(f"again: python -m tests.fuzz {name} --replay {file.relative_to(ROOT)}")
        print(f"input: {b64encode(file.read_bytes()).decode()}")


def _keep(target: Target) -> None:
    """Keep the fewest inputs that reach the same code."""
    folder = WORK / target.name
    shutil.rmtree(folder / "kept", ignore_errors=True)
    (folder / "kept").mkdir()
    merge = ["-merge=1", SIZE, str(folder / "kept"), str(folder / "corpus")]
    ended, output = _run([f"{__package__}.search", target.name, *merge], SECONDS)
    if ended:
        raise SystemExit(f"{target.name}: the corpus stays as it was\n{output[-4000:]}")
    keep(target, [file.read_bytes() for file in (folder / "kept").iterdir()])


if __name__ == "__main__":
    raise SystemExit(main())
