"""One connection to IRC, sans-I/O: getting in, staying in, and what servers refuse."""

import pytest

from reliable_channel_status.irc import IrcClient, IrcError, Joined, Kicked, Said
from reliable_channel_status.irc.client import LOST_MS, PING_MS, REGISTER_MS, REJOIN_MS


def client(password: str = "") -> IrcClient:
    one = IrcClient("tea", "#tea", password, 0)
    assert one.take().endswith(b"NICK :tea\r\nUSER tea 0 * :bridge to Status\r\n")
    return one


def joined() -> IrcClient:
    one = client()
    assert list(one.receive(b":srv 001 tea :Welcome\r\n", 0)) == []
    assert one.take() == b"JOIN :#tea\r\n"
    assert list(one.receive(b":tea!t@h JOIN #Tea\r\n", 0)) == [Joined()]
    return one


def test_a_password_goes_first() -> None:
    assert IrcClient("tea", "#tea", "account:secret", 0).take().startswith(b"PASS :account:secret")


def test_what_others_say_in_the_channel_is_heard() -> None:
    one = joined()
    data = (
        b":ann!a@h PRIVMSG #tea :\x02hi\x02\r\n"
        b":ann!a@h PRIVMSG tea :to you alone\r\n"
        b":ann!a@h PRIVMSG #other :elsewhere\r\n"
        b":ann!a@h NOTICE #tea :a bot\r\n"
        b":tea!a@h PRIVMSG #tea :an echo\r\n"
        b":ann!a@h PRIVMSG #tea :\x01ACTION waves\x01\r\n"
        b":ann!a@h PRIVMSG #tea :\x01VERSION\x01\r\n"
        b":ann!a@h PRIVMSG #tea\r\n"
        b"PING :123\r\n"
    )
    heard = list(one.receive(data, 1))
    assert heard == [
        Said("ann", "ann!a@h", "hi", ""),
        Said("ann", "ann!a@h", "* ann waves", ""),
    ]
    assert one.take() == b"PONG :123\r\n"


def test_a_taken_nickname_gets_another_and_is_given_up_after_five() -> None:
    one = client()
    for number in range(1, 6):
        list(one.receive(b":srv 433 * tea :in use\r\n", 0))
        assert one.take() == f"NICK :tea{'_' * number}\r\n".encode()
    with pytest.raises(IrcError, match="no nickname was accepted: tea in use"):
        list(one.receive(b":srv 433 * tea :in use\r\n", 0))


def test_the_server_decides_about_the_nickname() -> None:
    one = client()
    list(one.receive(b":srv 001 guest7 :Welcome\r\n", 0))
    assert list(one.receive(b":guest7!g@h JOIN :#tea\r\n", 0)) == [Joined()]
    list(one.receive(b":guest7!g@h NICK :tea\r\n", 0))
    assert one.nick == "tea"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"ERROR :Closing link", "ended the connection: Closing link"),
        (b":srv 474 tea #tea :banned", "not let into #tea: banned"),
        (b":srv 465 tea :go away", "refused by the server: go away"),
    ],
)
def test_a_refusal_is_named(line: bytes, why: str) -> None:
    with pytest.raises(IrcError, match=why):
        list(client().receive(line + b"\r\n", 0))


def test_a_client_that_was_kicked_comes_back() -> None:
    one = joined()
    assert list(one.receive(b":op!o@h KICK #tea tea :bye\r\n", 0)) == [Kicked("op", "bye")]
    one.tick(REJOIN_MS - 1)
    assert one.take() == b""
    one.tick(REJOIN_MS)
    assert one.take() == b"JOIN :#tea\r\n"


def test_a_silent_server_is_asked_and_then_lost() -> None:
    one = joined()
    one.tick(PING_MS)
    one.tick(PING_MS + 1)
    assert one.take() == b"PING :bridge\r\n"
    with pytest.raises(IrcError, match="silent for 120 s"):
        one.tick(LOST_MS)
    with pytest.raises(IrcError, match="not in #tea after 60 s"):
        client().tick(REGISTER_MS)
