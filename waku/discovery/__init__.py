"""Discovery of Waku nodes: node records, lists in the DNS, and named networks.

    identity enr own_record dns_tree     what is signed, and how (no I/O)
    resolver                     asking the DNS
    networks                     presets, and networks of yours (TOML)

Needs the extra `[libp2p]`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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

_HOME_OF: Final = {
    "Capability": "enr",
    "check_entry": "networks",
    "find_network": "networks",
    "HttpsResolver": "resolver",
    "LookupFailed": "resolver",
    "Network": "networks",
    "NodeRecord": "enr",
    "read_tree": "resolver",
    "Resolver": "resolver",
    "signed_record": "own_record",
    "SystemResolver": "resolver",
    "TreeUrl": "dns_tree",
    "TreeWalk": "dns_tree",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a name when it is used: a node that does not search needs no resolver."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"waku.discovery.{_HOME_OF[name]}"), name)

    def __dir__() -> list[str]:
        return __all__
