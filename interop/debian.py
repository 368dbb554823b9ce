"""Programs that Debian packages: found on the path, or installed where that may be done."""

import shutil

from .waku.engine import EngineUnavailable, install_packages, may_start


class ProgramUnavailable(RuntimeError):
    """The program is not here, and cannot be installed."""


def debian_program(package: str, *names: str) -> str:
    """Return the path of a program, by any of its names; installed, as root on Debian.

    Raises:
        ProgramUnavailable: it cannot be had: one line with the reason.
    """
    for name in (package, *names):
        if (found := shutil.which(name)) is not None:
            return found
    if not may_start() or shutil.which("apt-get") is None:
        raise ProgramUnavailable(f"there is no `{package}`; as root on Debian it is installed")
    try:
        install_packages(package)
    except EngineUnavailable as error:
        raise ProgramUnavailable(str(error)) from error
    # Daemons are in a folder that is not on everybody's path.
    folders = "/usr/local/sbin:/usr/sbin:/usr/bin"
    found = shutil.which(package) or shutil.which(package, path=folders)
    if found is None:
        raise ProgramUnavailable(f"the package {package} has no program of that name")
    return found
