"""Names in a group (§2), for Sync Interests, state vectors and publications."""

from dataclasses import dataclass
from typing import Final, Literal

from .name import (
    KEYWORD,
    SEQUENCE,
    TIMESTAMP,
    VERSION,
    Name,
    component_number,
    number_component,
    text_component,
)

PROTOCOL_VERSION: Final = 3

NamingScheme = Literal["spec", "svs-alo"]
"""Layout of names, where `spec` is that of the specification, `/<node>/<group>/t=/seq=`. `svs-alo`
is the layout of ndnd's SvsALO, `/<group>/<node>/t=/seq=/v=0/seg=`."""


@dataclass(frozen=True, slots=True)
class PublicationName:
    """Node, bootstrap time and number of a publication."""

    node: Name
    bootstrap_time: int
    seq: int


class Naming:
    """Names of one group in one naming scheme."""

    def __init__(self, group: Name, scheme: NamingScheme = "spec") -> None:
        self.group, self.scheme = group, scheme
        sync = group if scheme == "spec" else group.append(text_component("svs", KEYWORD))
        self.route = sync
        """What members register for sync; the same for all, or they do not hear each other."""
        self.sync = sync.append(number_component(VERSION, PROTOCOL_VERSION))
        """Name of Sync Interests without their digest, and of the Data in them."""

    def publications_of(self, node: Name) -> Name:
        """Return the prefix that a node registers for its publications."""
        return node.append(self.group) if self.scheme == "spec" else self.group.append(node)

    def publication(self, node: Name, bootstrap_time: int, seq: int) -> Name:
        """Return the name of a publication's Data packet, without a segment number."""
        name = self.publications_of(node).append(
            number_component(TIMESTAMP, bootstrap_time), number_component(SEQUENCE, seq)
        )
        if self.scheme == "spec":
            return name
        return name.append(number_component(VERSION, 0))  # SvsALO: objects never change

    def parse_publication(self, name: Name) -> PublicationName | None:
        """Return the publication that a name belongs to, or None for names outside the group."""
        group, components = self.group.components, name.components
        if self.scheme == "svs-alo":
            if not components or component_number(components[-1], VERSION) != 0:
                return None
            components = components[:-1]
        if len(components) < len(group) + 2:
            return None
        boot = component_number(components[-2], TIMESTAMP)
        seq = component_number(components[-1], SEQUENCE)
        prefix = components[:-2]
        if self.scheme == "spec":
            node, found = prefix[: len(prefix) - len(group)], prefix[len(prefix) - len(group) :]
        else:
            node, found = prefix[len(group) :], prefix[: len(group)]
        if found != group or boot is None or seq is None:
            return None
        return PublicationName(Name(node), boot, seq)
