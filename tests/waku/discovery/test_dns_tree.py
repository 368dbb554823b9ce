"""Trees in the DNS: what a resolver may do to a walk, and what bounds it."""

import pytest

from waku.discovery import TreeUrl, TreeWalk
from waku.discovery.dns_tree import MAX_LOOKUPS, MAX_PROBLEMS, MAX_TREES
from waku.libp2p import InvalidInput

from .zone import Key, Zone, waku_record

DOMAIN = "nodes.example"


def walked(zone: Zone, url: str) -> TreeWalk:
    walk = TreeWalk(url)
    while (name := walk.next_name()) is not None:
        zone.asked.append(name)
        if name in zone.texts_by_name:
            walk.receive(name, zone.texts_by_name[name])
        else:
            walk.fail(name, "does not exist")
    return walk


def nodes(count: int) -> list[str]:
    return [waku_record(n, f"/dns4/n{n}.example/tcp/1") for n in range(1, count + 1)]


def test_a_tree_and_its_links_are_read_each_once() -> None:
    zone = Zone()
    second = zone.plant("more.example", nodes(3), key=Key(5))
    # The second links back to the first: go-ethereum's lists do.
    first = zone.plant(DOMAIN, nodes(20), links=[second])
    zone.plant("more.example", nodes(3), key=Key(5), links=[first])
    walk = walked(zone, first)
    assert len(walk.records) == 20
    assert (walk.problems, walk.sequence) == ([], 3)
    assert len(zone.asked) == len(set(zone.asked))


def test_a_forged_root_gives_nothing() -> None:
    zone = Zone()
    url = zone.plant(DOMAIN, nodes(3), signer=Key(9))
    walk = walked(zone, url)
    assert (walk.records, walk.sequence) == ([], None)
    assert walk.problems == [f"{DOMAIN}: the root of the ENR tree has a wrong signature"]


def test_a_changed_text_costs_its_branch_alone() -> None:
    zone = Zone()
    url = zone.plant(DOMAIN, nodes(5), width=2)
    [at] = [name for name, texts in zone.texts_by_name.items() if texts == [nodes(5)[3]]]
    zone.texts_by_name[at] = [waku_record(99, "/dns4/evil.example/tcp/1")]
    walk = walked(zone, url)
    assert [record.text for record in walk.records] == [
        text for text in nodes(5) if text != nodes(5)[3]
    ]
    assert walk.problems == [
        f"{at}: the answer of the DNS has no text whose hash equals the requested name"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("enrtree-branch:AAAA", "not a hash"),
        ("hello", "neither a branch"),
        ("enrtree://AAAA@x.example", "neither a branch"),
        ("enr:AAAA", "one RLP list"),
        ("enrtree-branch:" + "A" * 3_000, "at most 2048"),
    ],
)
def test_nonsense_that_the_owner_signed_is_named(text: str, reason: str) -> None:
    zone = Zone()
    walk = walked(zone, zone.plant(DOMAIN, [*nodes(1), text]))
    assert len(walk.records) == 1
    [problem] = walk.problems
    assert reason in problem


def test_a_tree_without_end_is_left() -> None:
    zone = Zone()
    url = zone.plant(DOMAIN, [f"x{n}" for n in range(2 * MAX_LOOKUPS)], width=13)
    walk = walked(zone, url)
    assert len(zone.asked) == MAX_LOOKUPS
    assert len(walk.problems) == MAX_PROBLEMS
    zone = Zone()
    links = [zone.plant(f"t{n}.example", [], key=Key(n + 1)) for n in range(12)]
    walk = walked(zone, zone.plant(DOMAIN, nodes(1), links=links))
    assert len(walk.problems) == 12 + 1 - MAX_TREES


def test_no_root_is_a_problem() -> None:
    zone = Zone()
    url = zone.plant(DOMAIN, nodes(1))
    zone.texts_by_name[DOMAIN] = ["v=spf1 -all"]
    assert walked(zone, url).problems == [f"{DOMAIN}: the domain has no root of an ENR tree"]
    del zone.texts_by_name[DOMAIN]
    assert walked(zone, url).problems == [f"{DOMAIN}: does not exist"]


@pytest.mark.parametrize(
    "url",
    ["enrtree://", "enrtree://AAAA@x.example", "https://x.example", "enrtree://A*@x.example"],
)
def test_a_url_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        TreeWalk(url)


def test_a_url_is_read_and_written() -> None:
    url = Zone().plant(DOMAIN, [])
    assert str(TreeUrl.parse(url.replace("nodes.example", "Nodes.Example."))) == url
    for domain in ("", "a..b", "a b.example", "x" * 64 + ".example", ".".join(["x" * 60] * 5)):
        with pytest.raises(InvalidInput):
            TreeUrl.parse(url.replace(DOMAIN, domain))
