"""The node's face to libp2p peers: js-waku in a browser, edge nodes, `LightClient`.

    options                      where to listen, and what a peer may cost
    identity_file certificate addresses      the node's identity, and where it listens
    answers guests push_stream   requests, the peers that ask, and what is pushed to them
    reports                      what peers did that they may not
    listener                     all of it on sockets

It serves from the same archive, filter table and limits as REST (`waku.node.services`).
Needs the extra `[libp2p]`. The comments' T numbers are the list of traps in docs/libp2p.md.
"""

try:
    from .listener import Listener
    from .options import Listen, ListenLimits
except ModuleNotFoundError as error:
    raise ImportError(
        "listening for libp2p peers needs more packages: pip install 'reliable-channel[libp2p]'"
    ) from error

__all__ = ["Listen", "ListenLimits", "Listener"]
