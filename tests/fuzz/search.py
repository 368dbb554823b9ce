"""One target, searched for so many seconds: `python -m tests.fuzz.search TARGET SECONDS FOLDER`.

A process of its own, since atheris ends the one it runs in, and instruments what is imported in it.
Where there is no atheris (it has wheels for Linux on x86-64 alone) the corpus is mutated blindly.
The last line is `EXECUTIONS <n>`; a failure leaves the input in the folder as `crash-…`.
"""

import random
import shlex
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from hashlib import sha1
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Final, NoReturn

from .corpus import starting_points
from .target import MAX_INPUT_BYTES, Target

MINIMISE: Final = "minimise"
"""In the place of seconds: do not search, but thin out what was found."""
TIMEOUT_S: Final = 10
"""An input that takes longer counts as a hang; the slowest honest one takes a few milliseconds."""
MEMORY_MB: Final = 2048
OURS: Final = [
    "reliable_channel",
    "reliable_channel_encryption",
    "reliable_channel_mvds",
    "reliable_channel_signing",
    "reliable_channel_status",
    "reliable_channel_svs",
    "waku",
]


def with_coverage(name: str, seconds: int, folder: Path) -> NoReturn:
    """Let libFuzzer look for inputs that reach new code."""
    import atheris

    with atheris.instrument_imports(include=OURS):
        from .targets import TARGETS
    target = TARGETS[name]
    _write_out(target, folder / "corpus")
    words = folder / "words"
    words.write_text("".join(map(_entry, target.words)))
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={seconds}",
            f"-max_len={MAX_INPUT_BYTES}",
            f"-timeout={TIMEOUT_S}",
            f"-rss_limit_mb={MEMORY_MB}",
            f"-artifact_prefix={folder}/",
            "-print_final_stats=1",
            "-verbosity=0",
            *([f"-dict={words}"] if target.words else []),
            str(folder / "corpus"),
        ],
        target.check,
    )
    atheris.Fuzz()
    raise AssertionError("atheris ends the process")


def minimised(name: str, folder: Path, *arguments: str) -> NoReturn:
    """Put into `folder`/kept the fewest of `folder`/corpus that reach the same code.

    libFuzzer merges in processes that it starts by the name of the program, with `arguments`.
    """
    import atheris

    with atheris.instrument_imports(include=OURS):
        from .targets import TARGETS
    program, kept = folder / "merge", folder / "kept"
    if not arguments:
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        again = shlex.join([sys.executable, "-m", str(__spec__.name), name, MINIMISE, str(folder)])
        program.write_text(f'#!/bin/sh\nexec {again} "$@"\n')
        program.chmod(0o700)
        arguments = ("-merge=1", f"-max_len={MAX_INPUT_BYTES}", str(kept), str(folder / "corpus"))
    atheris.Setup([str(program), *arguments], TARGETS[name].check)
    atheris.Fuzz()
    raise AssertionError("atheris ends the process")


def blindly(target: Target, seconds: float, folder: Path, *, seed: int) -> int:
    """Mutate the corpus at random; return how many inputs were tried, and leave at a failure."""
    tried = 0
    for data in chain(_earlier_findings(folder), _mutations(target, seconds, seed)):
        tried += 1
        try:
            target.check(data)
        except Exception:  # whatever it is, it is the finding
            traceback.print_exc()
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"crash-{sha1(data).hexdigest()}").write_bytes(data)
            break
    return tried


def _earlier_findings(folder: Path) -> Iterator[bytes]:
    for file in list(folder.glob("*-*")):
        data = file.read_bytes()
        file.unlink()
        yield data


def _mutations(target: Target, seconds: float, seed: int) -> Iterator[bytes]:
    inputs, rng, until = starting_points(target), random.Random(seed), time.monotonic() + seconds
    while time.monotonic() < until:
        yield mutated(rng, rng.choice(inputs), rng.choice([*target.words, *inputs]))


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A few random changes to an input, some of them taken from another one."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(changed) + 1)
        to = min(len(changed), at + rng.choice((0, 1, 1, 2, 4, 16)))
        match rng.randrange(5):
            case 0 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                del changed[at:to]
            case 2:
                changed[at:at] = rng.choice((b"\xff", b"\x80", b"\0", b'"', b"[", b"9")) * (to - at)
            case 3:
                changed[at:at] = changed[at:to] * rng.randint(1, 4)
            case _:
                begin = rng.randrange(len(other) + 1)
                changed[at:to] = other[begin : begin + rng.randint(0, 32)]
    return bytes(changed[:MAX_INPUT_BYTES])


def _write_out(target: Target, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for data in starting_points(target):
        (folder / sha1(data).hexdigest()).write_bytes(data)
    for failed in folder.parent.glob("*-*"):  # an earlier finding is tried again, before all else
        failed.rename(folder / failed.name)


def _entry(word: bytes) -> str:
    """A line of libFuzzer's dictionaries."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


def _main(name: str, seconds: str, folder: str, *arguments: str) -> None:
    if seconds == MINIMISE:
        minimised(name, Path(folder), *arguments)
    if find_spec("atheris") is not None:
        with_coverage(name, int(seconds), Path(folder))
    from .targets import TARGETS

    seed = random.SystemRandom().getrandbits(32)
    print(f"no atheris here: blind mutation with seed {seed}", file=sys.stderr)
    print("EXECUTIONS", blindly(TARGETS[name], float(seconds), Path(folder), seed=seed))


if __name__ == "__main__":
    _main(*sys.argv[1:])
