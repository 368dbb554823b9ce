"""Presets, and files of one's own."""

from pathlib import Path

import pytest

from waku.discovery import Network, check_entry, find_network
from waku.libp2p import InvalidInput

from .zone import waku_record


@pytest.mark.parametrize(
    ("name", "cluster_id", "shards", "rln"),
    [
        ("twn", 1, range(8), True),
        ("logos.dev", 3, range(8), False),
        ("logos.test", 2, range(8), False),
        ("status.prod", 16, (32, 64), False),
    ],
)
def test_presets(name: str, cluster_id: int, shards: range, rln: bool) -> None:
    network = find_network(name)
    assert (network.name, network.cluster_id, network.rln) == (name, cluster_id, rln)
    assert network.all_shards == frozenset(shards)
    assert network.entry


def test_the_shard_of_a_content_topic() -> None:
    topic = "/app/1/chat/proto"
    assert find_network("status.prod").pubsub_topic_for(topic) == "/waku/2/rs/16/32"
    assert find_network("logos.test").pubsub_topic_for(topic).startswith("/waku/2/rs/2/")


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"logos\.dev, logos\.test, status\.prod, twn"):
        find_network("status.staging")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('cluster_id = 42\nshards = [1]\nentry = ["/ip4/10.0.0.1/tcp/1"]\n')
    assert find_network(str(file)) == Network(
        name="mine", cluster_id=42, shards=(1,), entry=("/ip4/10.0.0.1/tcp/1",)
    )
    with pytest.raises(FileNotFoundError):
        find_network(str(tmp_path / "other.toml"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cluster_id = 42", "`num_shards` or `shards`"),
        ("cluster_id = 42\nshards = [1]\nnum_shards = 1", "`num_shards` or `shards`"),
        ("shards = [1]", "`cluster_id` is missing"),
        ("cluster_id = 70_000\nshards = [1]", r"`cluster_id` must be between 0 and 65535"),
        ('cluster_id = "1"\nshards = [1]', "`cluster_id` must be between"),
        ("cluster_id = 1\nshards = [1_024]", "`shards` must be between 0 and 1023"),
        ("cluster_id = 1\nshards = 3", "`shards` must be a list of int"),
        ("cluster_id = 1\nnum_shards = 0", "`num_shards` must be between 1"),
        ('cluster_id = 1\nnum_shards = 1\nrln = "no"', "`rln` must be true or false"),
        ('cluster_id = 1\nnum_shards = 1\nentry = ["http://x"]', "neither a multiaddress"),
        ("cluster_id = 1\nnum_shards = 1\ncluster = 1", "unknown key 'cluster'"),
        ("[", "Invalid"),
        ("cluster_id = " + "[" * 5_000, "nested too deeply"),
        ("#" * 70_000, "more than 65536 bytes"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=reason) as failure:
        find_network(str(file))
    assert str(file) in str(failure.value)


def test_entries() -> None:
    check_entry(waku_record(3, "/dns4/a.example/tcp/1"))
    for text in ("/ip4/1.2.3.4/udp/1", "enrtree://x", "enr:x", "a.example"):
        with pytest.raises(InvalidInput):
            check_entry(text)
