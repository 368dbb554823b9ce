"""Seeds out of the golden vectors of other implementations."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from .target import MAX_INPUT_BYTES

DATA: Final = Path(__file__).parents[1] / "vectors" / "data"


@cache
def document(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def spec_messages() -> Iterator[bytes]:
    """Messages as js-waku writes them, and hostile ones."""
    for case in document("js-waku/messages.json")["cases"]:
        yield bytes.fromhex((case.get("wire") or case["bytes"]).get("hex", ""))


def nim_messages() -> Iterator[bytes]:
    """Messages as nim-sds writes them, and what it refuses."""
    vectors = document("nim-sds/nim_wire.json")
    for case in [*vectors["messages"], *vectors["decode_cases"]]:
        yield bytes.fromhex(case["hex"])


def nim_filters() -> Iterator[bytes]:
    """Bloom filters as nim-sds writes them."""
    for case in document("nim-sds/nim_wire.json")["blooms"]:
        yield bytes.fromhex(case["hex"])


def exchanges() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What was asked of nwaku nodes, and what they answered."""
    for file in sorted((DATA / "nwaku-rest").glob("*.json")):
        for exchange in json.loads(file.read_text()):
            yield exchange["request"], exchange["response"]


def written(body: Any) -> bytes:
    """A recorded body as it was on the wire."""
    if body is None:
        return b""
    text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
    return text.encode()[:MAX_INPUT_BYTES]
