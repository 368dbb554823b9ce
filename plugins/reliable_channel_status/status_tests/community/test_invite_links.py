"""Invite links as status-go writes them."""

from dataclasses import replace

import pytest

from reliable_channel_status import ChatIdentity, Community, InviteLink
from reliable_channel_status.community.invite_links import InviteData
from reliable_channel_status.wire.community_payloads import Shard
from status_tests.world import COMMUNITY, GENERAL, describing

KEY = "zQ3shZp9gY1FXfYkcd3CMrFLHriHQfrXvpF9XbZMwJhTcZsq8"
PLAIN = f"https://status.app/c#{KEY}"
# From status-go's protocol/messenger_share_urls_test.go and messenger_storenode_request_test.go.
WITHOUT_TAGS = f"https://status.app/c/CxCACh8KBFBJR1MSDHdlIGxvdmUgcGlncxgBIgcjRDM0NEM1Aw==#{KEY}"
WITH_TAGS = f"https://status.app/c/CxKACiMKBFBJR1MSDHdlIGxvdmUgcGlncxgBIgcjRDM0NEM1KgIjHgM=#{KEY}"
ODD_LENGTH = (
    "https://status.app/c/iyKACkQKB0Rvb2RsZXMSJ0NvbG9yaW5nIHRoZSB3b3JsZCB3aXRoIGpveSDigKIg4bSXIOKA"
    "ohiYohsiByMxMzFEMkYqAwEhMwM=#zQ3shYSHp7GoiXaauJMnDcjwU2yNjdzpXLosAWapPS4CFxc11"
)
COMPRESSED = (
    "https://status.app/c/G4IAAMQn9ucHF-V3W5Ouuy0xf0BtTjlwCANJEmwB2CG5p2xKUYzK_l37kzXulUppltT1t6mBcC"
    "EJsljRoGrKCP7rWommQomrMA2gBN7RrvCMkFqQwnCNzkNYWrLG85E6GVoM_nolTtfIzl53J1N-tj8fz4_TnO4IIw==#"
    f"{KEY}"
)
CHANNEL = f"https://status.app/cc/{GENERAL}#{KEY}"


@pytest.mark.parametrize("text", [PLAIN, WITHOUT_TAGS, WITH_TAGS, ODD_LENGTH, CHANNEL])
def test_links_of_status_go_are_read_and_written_alike(text: str) -> None:
    link = InviteLink.parse(text)
    assert link.text == text
    assert link.community == Community.parse(text)


def test_the_data_is_the_preview() -> None:
    assert InviteLink.parse(WITH_TAGS).data == InviteData(
        display_name="PIGS",
        description="we love pigs",
        members_count=1,
        color="#D344C5",
        tag_indices=(35, 30),
    )
    assert InviteLink.parse(PLAIN).data is None
    assert InviteLink.parse(COMPRESSED).data is None, "the key is enough"
    assert InviteLink.parse(COMPRESSED).community == Community.parse(KEY)
    assert InviteLink.parse(CHANNEL).channel == GENERAL


def test_a_link_of_a_description() -> None:
    assert InviteLink.of(COMMUNITY).text.startswith("https://status.app/c#zQ3s")
    assert InviteLink.of(COMMUNITY, describing({})).data is None, "it shows nothing of itself"
    identity = ChatIdentity(display_name="tea", description="x" * 200, color="#4360df")
    link = InviteLink.of(COMMUNITY, replace(describing({}), identity=identity))
    assert InviteLink.parse(link.text) == link and link.data is not None
    shard = InviteLink(COMMUNITY, InviteData(shard=Shard(cluster=16, index=32)))
    assert InviteLink.parse(shard.text) == shard


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "https://status.app/c",
        "https://status.app/u#" + KEY,
        "https://example.org/c#" + KEY,
        PLAIN + "x",
        "https://status.app/c/" + "A" * 9000 + "#" + KEY,
    ],
)
def test_what_is_no_link(text: str) -> None:
    with pytest.raises(ValueError, match=r"not an invite link|invite link ends"):
        InviteLink.parse(text)


@pytest.mark.parametrize("data", ["C", "CxCA", "CxCAAw==", "////", "CxKACgEBAQEBAw=="])
def test_data_that_means_nothing_is_left_unread(data: str) -> None:
    assert InviteLink.parse(f"https://status.app/c/{data}#{KEY}").data is None
