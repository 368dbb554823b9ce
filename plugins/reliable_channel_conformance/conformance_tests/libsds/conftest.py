"""The stand-in for libsds, compiled once."""

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("the stand-in for libsds needs a C compiler")
    target = tmp_path_factory.mktemp("libsds") / "libsds.so"
    source = Path(__file__).with_name("stand_in.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-pthread", "-o", target, source], check=True
    )
    return target
