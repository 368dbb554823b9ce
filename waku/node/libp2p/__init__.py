"""Service of a node to libp2p peers: js-waku in a browser, nwaku, go-waku, and other embedded
nodes.

    options                      where to listen, and what a peer may cost
    identity_file certificate addresses      the node's identity, and where it listens
    serving answers guests push_stream   requests, the peers that ask, and what they are pushed
    gossip peers                 the meshes of relay; peers, and what they are asked
    reports                      what peers did that they may not
    network                      all of it on one host

It serves from the same archive, filter table and limits as REST (`waku.node.services`).
Needs the extra `[libp2p]`. The comments' T numbers are the list of traps in docs/libp2p.md.
"""

try:
    from .network import Network
    from .options import Listen, ListenLimits
except ModuleNotFoundError as error:
    raise ImportError(
        "libp2p peers need more packages: pip install 'reliable-channel[libp2p]'"
    ) from error

__all__ = ["Listen", "ListenLimits", "Network"]
