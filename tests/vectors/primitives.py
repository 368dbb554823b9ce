"""Bloom filters, hashes, ids and repair timers of js-waku."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from reliable_channel.sds.bloom import BloomFilter, BloomLayout, BloomParameters, positions
from reliable_channel.sds.ids import js_waku_id
from reliable_channel.sds.options import RepairOptions
from reliable_channel.sds.repair.buffers import in_response_group, response_groups, t_req, t_resp

from .case import Result, blob, cases, first_difference, guarded


def check_bloom(document: Any) -> Iterator[Result]:
    yield from cases(document, _bloom)


def _bloom(case: Any) -> str | None:
    params = case["params"]
    if "kHashes" in params:
        # Without `forceNBitsPerElem` js-waku looks the size up in a table that nothing else uses.
        force = params.get("forceNBitsPerElem")
        bit_count = params["capacity"] * force if force else case["total_bits"]
        layout = BloomLayout(bit_count, params["kHashes"])
        expected_hashes = params["kHashes"]
    else:
        parameters = BloomParameters(params["capacity"], params["errorRate"])
        layout, expected_hashes = parameters.layout, parameters.hash_count
    bloom_filter = BloomFilter(layout)
    for message_id in _ids(case["ids"]):
        bloom_filter.insert(message_id)
    data = bytes(bloom_filter)
    serialized = case["serialized"]
    pairs: list[tuple[str, object, object]] = [
        ("k_hashes", expected_hashes, case["k_hashes"]),
        ("total_bits", layout.bit_count, case["total_bits"]),
        ("byte_len", layout.byte_count, case["byte_len"]),
        ("serialized length", len(data), serialized["len"]),
        ("set bits", int.from_bytes(data).bit_count(), serialized["popcount"]),
        ("serialized sha256", sha256(data).hexdigest(), serialized["sha256"]),
    ]
    if "bits" in serialized or "hex" in serialized:
        pairs.append(("serialized bytes", data, blob(serialized)))
    pairs += [
        (f"lookup of {lookup['id']!r}", lookup["id"] in bloom_filter, lookup["result"])
        for lookup in case["lookups"]
    ]
    return first_difference(pairs)


def _ids(ids: Any) -> Iterator[str]:
    if "list" in ids:
        yield from ids["list"]
        return
    for number in range(ids["count"]):
        yield sha256(f"{ids['prefix']}{number}".encode()).hexdigest()


def check_hashn(document: Any) -> Iterator[Result]:
    """Cases that record an error of js-waku are left out: it cannot count beyond 2^31 - 1."""
    for number, case in enumerate(document["cases"]):
        if "error" not in case:
            yield f"case {number}", guarded(_hashn, case)


def _hashn(case: Any) -> str | None:
    index = positions(case["item"], case["n"] + 1, case["m"])[case["n"]]
    return first_difference([("index", index, case["index"])])


def check_message_id(document: Any) -> Iterator[Result]:
    yield from cases(
        document,
        lambda case: first_difference(
            [("message_id", js_waku_id("", 0, bytes.fromhex(case["payload"])), case["message_id"])]
        ),
    )


def check_repair(document: Any) -> Iterator[Result]:
    """Timers and response groups; where js-waku recorded an error only the rest is compared."""
    for number, group in enumerate(document["groups"]):
        if "error" not in group:
            yield f"group {number}", guarded(_group, group)
    for number, case in enumerate(document["cases"]):
        if "t_req_error" not in case:
            yield f"case {number}", guarded(_repair, case)


def _group(group: Any) -> str | None:
    ours = response_groups(group["num_participants"])
    return first_difference([("num_response_groups", ours, group["num_response_groups"])])


def _repair(case: Any) -> str | None:
    options = RepairOptions(
        t_min_ms=case["t_min"],
        t_max_ms=case["t_max"],
        num_response_groups=case["num_response_groups"],
    )
    participant, sender, message_id = case["participant"], case["sender"], case["message_id"]
    now_ms = case["now"]
    in_group = in_response_group(participant, sender, message_id, options.num_response_groups)
    return first_difference(
        [
            ("t_req", t_req(participant, message_id, now_ms, options), case["t_req"]),
            ("t_resp", t_resp(participant, sender, message_id, now_ms, options), case["t_resp"]),
            ("in_group", in_group, case["in_group"]),
        ]
    )
