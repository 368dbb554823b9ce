"""The published vectors are what the core makes, fit their schema, and can be read."""

import json
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import jsonschema_rs
import pytest

from reliable_channel.sds import SPEC
from reliable_channel_conformance.vectors.__main__ import FILES, text

VECTORS = Path(__file__).parents[1] / "vectors"
V1 = VECTORS / "v1"


@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_up_to_date(kind: str) -> None:
    regenerate = "run `python -m reliable_channel_conformance.vectors FOLDER`"
    assert (V1 / f"{kind}.json").read_text() == text(kind), regenerate


@pytest.mark.parametrize("kind", FILES)
def test_a_file_fits_the_schema(kind: str) -> None:
    schema = json.loads((V1 / "schema.json").read_text())
    document = json.loads((V1 / f"{kind}.json").read_text())
    jsonschema_rs.validator_for(schema).validate(document)


@pytest.mark.parametrize(
    ("kind", "spoilt"),
    [
        ("sds_repair", {"name": "no times"}),
        ("message_ids", {"name": "x", "sender_id": "a", "timestamp_ns": 5, "content": "zz"}),
        ("traces", {"name": "x", "channel_id": "c", "options": {}, "participants": [], "steps": 5}),
    ],
)
def test_the_schema_refuses_another_form(kind: str, spoilt: dict[str, object]) -> None:
    schema = json.loads((V1 / "schema.json").read_text())
    document = {
        "format": "reliable-channel-vectors", "version": 1, "kind": kind, "cases": [spoilt]
    }  # fmt: skip
    assert not jsonschema_rs.validator_for(schema).is_valid(document)


@pytest.mark.parametrize(("program", "reader"), [(sys.executable, "read.py"), ("node", "read.mjs")])
def test_a_reader_reads_everything(program: str, reader: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no `{program}` on the path")
    done = subprocess.run(
        [program, str(VECTORS / reader), str(V1)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "steps of traces" in done.stdout
    assert len((VECTORS / reader).read_text().splitlines()) <= 50


def test_what_a_trace_sends_is_a_message() -> None:
    """`before`, the filter and `after` are the bytes again."""
    sys.path.insert(0, str(VECTORS))
    try:
        read = import_module("read")
    finally:
        sys.path.remove(str(VECTORS))
    for case in read.cases(V1, "sds_messages"):
        message = SPEC.codec.decode(read.wire_bytes(case["wire"]))
        assert message.message_id == case["fields"]["message_id"]
        assert (message.bloom_filter or b"") == read.filter_bytes(case["fields"]["bloom_filter"])
