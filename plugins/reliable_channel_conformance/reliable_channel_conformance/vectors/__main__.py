"""`python -m reliable_channel_conformance.vectors FOLDER`: write all vectors."""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from . import values
from .traces import traces

VERSION: Final = 1
FILES: Final[dict[str, Callable[[], Iterable[dict[str, Any]]]]] = {
    "sds_messages": values.messages,
    "bloom_filters": values.filters,
    "sds_repair": values.repairs,
    "message_ids": values.message_ids,
    "waku_message_hashes": values.hashes,
    "segments": values.segments,
    "traces": traces,
}


def text(kind: str) -> str:
    """Return a file of vectors with one case on each line."""
    cases = ",\n".join(json.dumps(case, separators=(",", ":")) for case in FILES[kind]())
    head = f'"format":"reliable-channel-vectors","version":{VERSION},"kind":"{kind}"'
    return f'{{{head},"cases":[\n{cases}\n]}}\n'


def main() -> None:
    """Write the files into a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kind in FILES:
        (folder / f"{kind}.json").write_text(text(kind))


if __name__ == "__main__":
    main()
