"""The kinds of vector files, by name, and what checks each; recordings of Status clients have a
name that another kind has, and are told by their shape."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import (
    codec,
    discovery,
    libp2p,
    mvds,
    nim,
    primitives,
    scenarios,
    status,
    status_real,
    svs,
    waku,
    waku_libp2p,
)
from .case import Result

Check = Callable[[Any], Iterator[Result]]

CHECKS: dict[str, Check] = {
    "bloom": primitives.check_bloom,
    "hashn": primitives.check_hashn,
    "message_id": primitives.check_message_id,
    "repair": primitives.check_repair,
    "messages": codec.check_messages,
    "keys": status_real.check_keys,
    "scenarios": scenarios.check_scenarios,
    "nim_wire": nim.check_nim_wire,
    "mvds": mvds.check_mvds,
    "svs": svs.check_svs,
    "status_payload": status.check_status_payload,
    "status_topics": status.check_status_topics,
    "waku_message_hash": waku.check_waku_message_hash,
    "autosharding": waku.check_autosharding,
    "waku_vectors": waku.check_waku_vectors,
    **discovery.CHECKS,
    **libp2p.CHECKS,
    **waku_libp2p.CHECKS,
}


def run_file(file: Path) -> Iterator[Result]:
    """Yield `(case, None)` for a case that agrees and `(case, difference)` for one that does
    not."""
    check = CHECKS.get(file.stem)
    if check is None:
        yield "file", f"unknown kind {file.stem!r}; known are {', '.join(sorted(CHECKS))}"
        return
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        yield "file", f"cannot be read: {error}"
        return
    if file.stem == "messages" and status_real.is_recording(document):
        check = status_real.check_messages
    cases = 0
    try:
        for result in check(document):
            cases += 1
            yield result
    except Exception as error:  # a document of another shape must fail, not end the run
        yield "file", f"cannot be read as {file.stem!r}: {type(error).__name__}: {error}"
        return
    if not cases:
        yield "file", "it holds no case"
