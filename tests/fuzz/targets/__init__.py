"""Every decoder of the project, by the name under which it is fuzzed."""

from typing import Final

from ..target import Target
from . import client, mvds, node, plugins, sds_codecs, sds_core, segments, status, svs, texts

TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for module in (sds_codecs, sds_core, segments, client, node, texts, plugins, svs, mvds, status)
    for target in module.TARGETS
}
