#!/usr/bin/env python3
"""`pip install` on a page: everything is installed already, so the names and extras are checked."""

import os
import re
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

arguments = [one for one in sys.argv[1:] if not one.startswith("-")]
if arguments[:1] != ["install"]:
    sys.exit(f"pip {' '.join(sys.argv[1:])}: pages only install")
projects = {}
root = Path(os.environ["PROJECT"])
for file in (root / "pyproject.toml", *root.glob("plugins/*/pyproject.toml")):
    project = tomllib.loads(file.read_text())["project"]
    projects[project["name"]] = project.get("optional-dependencies", {})
for wanted in arguments[1:]:
    found = re.fullmatch(r"([\w-]+)(?:\[([\w,-]+)\])?", wanted)
    if not found:
        sys.exit(f"pip: {wanted} is not a name")
    name, extras = found[1], (found[2] or "").split(",")
    if name not in projects:
        distribution(name)
    elif unknown := [extra for extra in extras if extra and extra not in projects[name]]:
        sys.exit(f"pip: {name} has no extra {unknown}")
