"""Commands of pages that are not typed, with the reason, and what a page needs before it is typed.

Flags of what is not typed are compared with those that exist.
"""

from collections.abc import Mapping
from typing import Final

LAB: Final = "plugins/reliable_channel_lab/lab_tests"
KIT: Final = "plugins/reliable_channel_conformance/conformance_tests"
LONG: Final = "more than a minute of CPU: "
CHECKOUT: Final = "in a checkout: "
SPARK: Final = "needs Java and pyspark, which `make test` does without: `make test-spark`"
OTHERS: Final = "a machine, file or program of others"

NOT_TYPED: Final[Mapping[str, Mapping[str, str]]] = {
    "docs/choosing.md": {
        "reliable-channel": f"{LONG}{LAB} runs small ones",
        "make docs": CHECKOUT + "tests/docs/test_docs.py",
    },
    "docs/conformance-kit.md": {
        "reliable-channel conformance   ": f"{LONG}{KIT} runs rows",
        "reliable-channel conformance --peer": OTHERS,
        "reliable-channel conformance --wire-profile nim": "needs a library of Nim",
        "make conformance": LONG + "by hand; needs npm's registry",
    },
    "docs/interop.md": {
        "make": "needs containers: `make interop` in CI",
        "INTEROP_CELLS": "needs containers",
        "cp -r": "needs npm's registry: `make conformance`",
        "nim c": "needs a compiler of Nim",
        "reliable-channel conformance": "peers of the two commands above",
        "jq": "files of the commands above",
    },
    "docs/facts.md": {
        "python -m audit_tests.mutations": LONG + "`make hunt WHAT=long`",
        "make hunt WHAT=long": LONG + "before a release",
        "reliable-channel audit ingest": SPARK,
    },
    "docs/pipeline.md": {
        "reliable-channel audit store /dns4": OTHERS,
        "reliable-channel audit store postgresql": OTHERS,
        "reliable-channel audit archive": "needs pyarrow: audit_tests/commands/test_store.py",
        "reliable-channel check journals/ --out": SPARK,
        "make demo AUDIT=1": SPARK,
        "export SPARK_HOME": SPARK,
        "$SPARK_HOME": SPARK,
    },
    "docs/plugins.md": {
        "pip install .": "tests/plugins/test_example.py installs and runs it elsewhere",
        "reliable-channel chat": "the same",
        "reliable-channel tally": "the same",
        "python -m build": "uploads to an index",
    },
    "docs/contributing.md": {"make dist": LONG + "CI"},
    "docs/simulation.md": {
        "reliable-channel simulate --seeds": LONG + "`make sim` in CI",
        "reliable-channel simulate --forever": "never ends: `make sim FOREVER=1`",
        "reliable-channel simulate --participants": f"{LONG}{LAB}/sim",
        "reliable-channel sweep": f"{LONG}{LAB}/sweep",
        "make hunt WHAT=fuzz": LONG + "tests/fuzz has the inputs that were kept",
        "FUZZ_SECONDS=60 make hunt WHAT=fuzz": LONG + "as `make hunt WHAT=fuzz`",
    },
    "docs/status-bots.md": {
        "python archive.py": "needs a community: status_tests",
        "python archive_on_spark.py": SPARK,
        "reliable-channel check": SPARK,
    },
    "docs/status-communities.md": {"python community_report.py": "needs a community: status_tests"},
    "docs/status-framework.md": {
        "reliable-channel bot run": "goes on when an editor writes: the plugin's tests of reloading"
    },
    "docs/tuning.md": {"reliable-channel sweep": LONG + "`make docs WHAT=tuning`"},
}
"""By page and the beginning of a command: why it is not typed, and what runs it instead."""

_NODE: Final = """```console title="the node"
$ reliable-channel node --store store.sqlite3
listening on …
…
```
"""
_SENT: Final = """```console
$ reliable-channel send --sender-id deploy "version 7 is out"
…
$ reliable-channel listen --sender-id shop --count 1
…
$ reliable-channel send --sender-id shop hello
…
```
"""

GIVEN: Final[Mapping[str, str]] = {
    "docs/command-line.md": f"""{_NODE}
```toml title="channel.toml"
[channel]
channel_id = "general"
```
```console title="another participant"
$ reliable-channel listen --sender-id bob
…
```
""",
    "docs/operations.md": _NODE,
    "docs/conformance-kit.md": _NODE,
    "docs/pipeline.md": f"""{_NODE}{_SENT}
```python title="given.py"
from pathlib import Path

from audit_tests.generated import write_group
from audit_tests.group_reliability.samples import KnownRun, relay_lines, write_files

Path("journals").mkdir()
write_group(Path("journals"))
for seed, folder in enumerate(("runs/baseline", "before", "after"), 1):
    run = KnownRun(seed=seed, lost={{2: {{5, 6}}}} if folder == "before" else {{}})
    write_files(Path(folder), run, relay_lines(run))
```
```console
$ PYTHONPATH=$PROJECT python given.py
```
""",
    "docs/state.md": f"""{_NODE}{_SENT}
```console
$ cp .local/share/reliable-channel/general/deploy.db shop.db
```
""",
    "docs/status-bots.md": _NODE,
}
"""What the reader of a page has already, as a page itself."""
