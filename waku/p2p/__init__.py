"""Waku's protocols over libp2p.

    protocols codec      names, limits, and the messages' bytes (no I/O)

The comments' T numbers are the list of traps in docs/libp2p.md.
Needs the extra `[libp2p]`.
"""
