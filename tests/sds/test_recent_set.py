from reliable_channel.sds.recent_set import RecentSet


def test_the_oldest_keys_are_forgotten() -> None:
    recent = RecentSet[bytes](2)
    assert [recent.add(digest) for digest in (b"a", b"b", b"a", b"c")] == [True, True, False, True]
    assert (b"a" in recent, b"b" in recent, len(recent)) == (True, False, 2)
