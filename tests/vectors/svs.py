"""What ndnd v1.5.3 writes and reads of State Vector Sync v3, and how it compares vectors.

`decode` holds ndnd's behaviour, which is looser than the packet format: what it refuses must be
refused here, what it takes must mean the same here or be refused.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from reliable_channel_svs import Naming, StateVector, TlvError
from reliable_channel_svs.name import Name
from reliable_channel_svs.packet import Interest, decode_data, decode_interest, make_data
from reliable_channel_svs.signing import (
    DigestSigner,
    DigestTrust,
    Ed25519Signer,
    HmacSigner,
    KeyTrust,
    Signer,
    Trust,
)

from .case import Result, first_difference, guarded


def check_svs(document: Any) -> Iterator[Result]:
    for section, check in _SECTIONS.items():
        for number, case in enumerate(document[section]):
            name = case.get("case", number) if isinstance(case, dict) else number
            yield f"{section}: {name}", guarded(check, case)


def _check_vector(case: Any) -> str | None:
    wire = bytes.fromhex(case["wire"])
    written = _vector(case["input"]).encode()
    decoded = StateVector.decode(wire)
    return first_difference(
        [
            ("encoded", written, wire),
            ("decoded", _entries(decoded), _recorded(case["order"])),
            ("encoded again", decoded.encode(), wire),
            *((f"name {e['name']}", _name(e).encode(), _hex(e["name_tlv"])) for e in case["order"]),
            *((f"text of {e['name']}", str(_name(e)), e["name"]) for e in case["order"]),
        ]
    )


def _check_comparison(case: Any) -> str | None:
    a, b = StateVector.decode(_hex(case["a"])), StateVector.decode(_hex(case["b"]))
    merged = a.copy()
    merged.merge(b)
    return first_difference(
        [
            ("a outdated to b", a.is_outdated_to(b), case["a_outdated_to_b"]),
            ("b outdated to a", b.is_outdated_to(a), case["b_outdated_to_a"]),
            ("merge", merged.encode(), _hex(case["merge"])),
        ]
    )


def _check_name(case: Any) -> str | None:
    node, group = _parse(case["node"]), _parse(case["group"])
    boot, seq = int(case["boot"]), int(case["seq"])
    spec, alo = Naming(group), Naming(group, "svs-alo")
    spec_name, alo_name = spec.publication(node, boot, seq), alo.publication(node, boot, seq)
    read = spec.parse_publication(Name.decode(_hex(case["spec_name_tlv"])))
    read_alo = alo.parse_publication(Name.decode(_hex(case["svs_alo_name_tlv"])))
    assert read is not None and read_alo is not None
    return first_difference(
        [
            ("spec_name", _text(spec_name), case["spec_name"]),
            ("spec_name_tlv", spec_name.encode(), _hex(case["spec_name_tlv"])),
            ("svs_alo_name", _text(alo_name), case["svs_alo_name"]),
            ("svs_alo_name_tlv", alo_name.encode(), _hex(case["svs_alo_name_tlv"])),
            ("read", (read.node, read.bootstrap_time, read.seq), (node, boot, seq)),
            ("read alo", (read_alo.node, read_alo.bootstrap_time, read_alo.seq), (node, boot, seq)),
        ]
    )


def _parse(text: str) -> Name:
    """A name as ndnd writes it: without the three periods that belong before periods."""
    return Name.parse(re.sub(r"(?<=/)(\.+)(?=/|$)", r"...\1", text))


def _text(name: Name) -> str:
    return re.sub(r"(?<=/)\.\.\.(?=\.+(/|$))", "", str(name))


def _check_packet(case: Any) -> str | None:
    signer, trust = _keys(case)
    name, vector = Name.parse(case["data_name"]), _hex(case["sv_wire"])
    data = make_data(name, vector, signer)
    sync = Naming(Name.parse(case["group"])).sync
    interest = Interest(sync, _hex(case["nonce"]), 1_000, parameters=data).encode()
    read = decode_data(_hex(case["data"]))
    read.check(trust)
    question = decode_interest(_hex(case["interest"]))
    return first_difference(
        [
            ("data", data, _hex(case["data"])),
            ("interest", interest, _hex(case["interest"])),
            ("name", read.name, name),
            ("content", read.content, vector),
            ("covered", read.covered, _hex(case["signature_covered"])),
            ("signature", read.signature.value, _hex(case["signature_value"])),
            ("sync name", question.name, sync),
            ("parameters", question.parameters, data),
            ("digest", interest.count(_hex(case["parameters_digest"])), 1),
            ("interest name", interest.count(_hex(case["interest_name_tlv"])), 1),
        ]
    )


def _keys(case: Any) -> tuple[Signer, Trust]:
    match case["signer"]:
        case "DigestSha256":
            return DigestSigner(), DigestTrust()
        case "HmacWithSha256":
            shared = HmacSigner(_hex(case["key"]))
            return shared, shared
        case "Ed25519":
            key_name = Name.parse(case["key_locator"])
            signer = Ed25519Signer(_hex(case["key"]), key_name)
            return signer, KeyTrust({key_name: signer.public_key})
        case other:
            raise ValueError(f"unknown signer {other!r}")


def _check_decoding(case: Any) -> str | None:
    try:
        vector = StateVector.decode(_hex(case["wire"]))
    except TlvError:
        return None  # ndnd refuses it too, or it is no canonical TLV
    if not case["ok"] or case.get("no_state_vector"):
        return f"read as {vector!r}; ndnd finds no state vector"
    recorded = StateVector()
    for entry in case["entries"]:
        recorded.merge(_vector([entry]))
    return first_difference([("decoded", _entries(vector), _entries(recorded))])


def _vector(entries: Any) -> StateVector:
    return StateVector(
        {_name(e): {int(s["boot"]): int(s["seq"]) for s in e["seqs"]} for e in entries}
    )


def _name(entry: Any) -> Name:
    return Name.parse(entry["name"])


def _entries(vector: StateVector) -> list[tuple[str, list[tuple[int, int]]]]:
    return [(str(name), sorted(vector.numbers(name).items())) for name in vector]


def _recorded(entries: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (e["name"], [(int(s["boot"]), int(s["seq"])) for s in e["seqs"] if int(s["seq"])])
        for e in entries
    ]


_hex: Final = bytes.fromhex

_SECTIONS: Final[dict[str, Callable[[Any], str | None]]] = {
    "state_vectors": _check_vector,
    "compare": _check_comparison,
    "data_names": _check_name,
    "packets": _check_packet,
    "decode": _check_decoding,
}
