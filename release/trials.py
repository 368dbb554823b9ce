"""What is tried with built distributions, in bare environments."""

import re
import shutil
import zipfile
from pathlib import Path
from typing import Final

from release.bare import Bare, TrialFailed

SOURCES: Final = Path(__file__).parent / "outside"
EXTRAS: Final = "reliable-channel[cli,libp2p,node]"


def _outside(bare: Bare, program: str) -> str:
    """A program as a file outside the source tree, of which nothing may be found."""
    return Path(shutil.copyfile(SOURCES / program, bare.place / program)).name


def sdk_alone(bare: Bare, dist: Path) -> str:
    """The SDK without any extra: a program runs, and the command says what it needs."""
    bare.install("reliable-channel", dist=dist)
    printed = bare.run("python", _outside(bare, "program.py"))
    if "alice: hello" not in printed:
        raise TrialFailed(f"the program printed {printed!r}")
    try:
        bare.run("reliable-channel", "--version")
    except TrialFailed as error:
        if "pip install 'reliable-channel[cli]'" not in str(error):
            raise
    else:
        raise TrialFailed("reliable-channel --version ran without the extra [cli]")
    return "a program runs; the command names its extra"


def everything(bare: Bare, dist: Path) -> str:
    """All packages and light extras: the command line runs, and finds every plugin."""
    plugins = sorted(file.name.split("-")[0] for file in dist.glob("*.whl"))
    bare.install(EXTRAS, *(name.replace("_", "-") for name in plugins), dist=dist)
    bare.run("reliable-channel", "--version")
    listed = bare.run("reliable-channel", "plugins")
    missing = [name for name in map(_plugin_of, dist.glob("*.whl")) if name and name not in listed]
    if missing:
        raise TrialFailed(f"`reliable-channel plugins` lacks {', '.join(missing)}:\n{listed}")
    simulated = bare.run("reliable-channel", "simulate", "--seeds", "3", "--first-seed", "1")
    if "3" not in simulated:
        raise TrialFailed(simulated)
    return f"{len(plugins)} packages; `plugins` lists them; `simulate` runs"


def _plugin_of(wheel: Path) -> str | None:
    """The name that a wheel registers as plugin, or None."""
    with zipfile.ZipFile(wheel) as files:
        texts = [files.read(n).decode() for n in files.namelist() if n.endswith("entry_points.txt")]
    found = re.search(r"\[reliable_channel\]\n(\w+) =", "".join(texts))
    return found[1] if found else None


def types(bare: Bare, dist: Path) -> str:
    """A program from outside passes mypy and pyright, and a misspelt option does not."""
    bare.install("mypy", "pyright[nodejs]", dist=dist)
    for checker in (("mypy", "--strict"), ("pyright", "--pythonpath", bare.python)):
        bare.run(*checker, _outside(bare, "program.py"))
        try:
            bare.run(*checker, _outside(bare, "misspelt.py"))
        except TrialFailed as error:
            if str(error).count("retry_intervall_ms") < 2:
                raise
        else:
            raise TrialFailed(f"{checker[0]} accepts misspelt.py")
    return "mypy --strict and pyright accept the program, and refuse a misspelt option"


def foreign_waku(bare: Bare, dist: Path) -> str:
    """An unrelated distribution that installs a package `waku` is named, with what to do."""
    with zipfile.ZipFile(bare.place / "waku-9.9-py3-none-any.whl", "w") as wheel:
        wheel.writestr("waku/__init__.py", '"""Not ours."""\n')
        about = "waku-9.9.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: waku\nVersion: 9.9\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    bare.run("python", "-m", "pip", "install", "--quiet", "--no-deps", str(wheel.filename))
    try:
        bare.run("python", _outside(bare, "program.py"))
    except TrialFailed as error:
        if "pip uninstall waku" not in str(error):
            raise
    else:
        raise TrialFailed("a foreign `waku` was not noticed")
    return "a foreign package `waku` is named, with what to do"
