"""Every decoder of the project, by the name under which it is fuzzed."""

from typing import Final

from ..target import Target
from . import (
    client,
    direct,
    discovery,
    gossip,
    libp2p,
    mvds,
    node,
    plugins,
    sds_codecs,
    sds_core,
    segments,
    status,
    svs,
    texts,
    waku_p2p,
)

MODULES: Final = (
    *(sds_codecs, sds_core, segments, client, node, texts, plugins),
    *(svs, mvds, status, direct, libp2p, gossip, discovery, waku_p2p),
)
TARGETS: Final[dict[str, Target]] = {
    target.name: target for module in MODULES for target in module.TARGETS
}
