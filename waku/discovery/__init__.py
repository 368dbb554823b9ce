"""Where Waku's nodes are: node records, lists in the DNS, and named networks.

    identity enr own_record dns_tree     what is signed, and how (no I/O)
    resolver                     asking the DNS
    networks                     presets, and networks of yours (TOML)

Needs the extra `[libp2p]`.
"""

from .dns_tree import TreeUrl, TreeWalk
from .enr import Capability, NodeRecord
from .networks import Network, check_entry, find_network
from .own_record import signed_record
from .resolver import HttpsResolver, LookupFailed, Resolver, SystemResolver, read_tree

__all__ = [
    "Capability",
    "HttpsResolver",
    "LookupFailed",
    "Network",
    "NodeRecord",
    "Resolver",
    "SystemResolver",
    "TreeUrl",
    "TreeWalk",
    "check_entry",
    "find_network",
    "read_tree",
    "signed_record",
]
