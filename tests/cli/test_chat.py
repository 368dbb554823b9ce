"""What a person sees of a chat, on a terminal in a pty."""

import fcntl
import re
import signal
import struct
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reliable_channel.cli.own_messages import REMEMBERED, OwnMessages
from reliable_channel.health import ChannelHealth

from .emulator import Emulator
from .processes import Peer, Terminal, peers
from .test_commands import address, flags

__all__ = ["address"]  # a fixture

COLUMNS = 60
WORKS = ChannelHealth("c", "a", True, True)


class Person(Terminal):
    """A terminal, and what is on its screen."""

    def sees(self, wanted: Callable[[list[str]], object]) -> list[str]:
        """Read on until the screen is as wanted."""
        while True:
            emulator = Emulator(COLUMNS, 25)
            emulator.feed(self.screen)
            if wanted(emulator.shown):
                return emulator.shown
            self._read(f"the screen shows {emulator.shown}")


def row(pattern: str) -> Callable[[list[str]], object]:
    return lambda rows: any(re.search(pattern, one) for one in rows)


@contextmanager
def chatting(address: str, channel: str, tmp_path: Path) -> Iterator[tuple[Person, Peer]]:
    kept = ["--state", f"sqlite:///{tmp_path}/alice.db"]
    with peers(flags(address, channel, "bob")) as (bob,):
        bob.event("ready")
        flag_list = [*flags(address, channel, "alice"), *kept]
        with Person("chat", *flag_list, columns=COLUMNS) as alice:
            alice.sees(row("^>"))
            yield alice, bob


def test_a_tick_appears_at_the_message_once_it_is_acknowledged(
    address: str, tmp_path: Path
) -> None:
    with chatting(address, "ticks", tmp_path) as (alice, bob):
        alice.type("hello\n")
        alice.sees(row(r"^· \d\d:\d\d alice hello$"))
        bob.event("message_received")
        alice.sees(row("^>$"))  # what is typed before would be echoed twice
        alice.type("half a li")
        alice.sees(row("^> half a li$"))
        bob.send("hello alice")
        rows = alice.sees(row(r"^✓ \d\d:\d\d alice hello$"))
        assert [one for one in rows if "hello" in one and "· " in one] == []
        heard, here = row(r"^\d\d:\d\d bob hello alice$"), row("^bob is here$")
        alice.sees(lambda rows: heard(rows) and here(rows) and rows[-1] == "> half a li")


def test_what_the_log_warns_of_is_a_line_of_the_conversation(address: str, tmp_path: Path) -> None:
    with chatting(address, "cafe\u0301", tmp_path) as (alice, _):
        rows = alice.sees(row("^>"))
        (warned,) = [at for at, one in enumerate(rows) if one.startswith("`channel_id` is 'cafe")]
        (begun,) = [at for at, one in enumerate(rows) if one.startswith("channel cafe")]
        assert warned < begun


def test_who_and_why_and_help(address: str, tmp_path: Path) -> None:
    with chatting(address, "commands", tmp_path) as (alice, bob):
        alice.type("/who\n")
        alice.sees(row("no other participant was heard yet"))
        alice.type("/why\n")
        alice.sees(row("the channel can send and receive"))
        bob.send("hi")
        alice.sees(row("bob hi"))
        alice.type("/why bob\n")
        alice.sees(row(r"^“hi”: its first copy arrived after \d"))
        alice.sees(row(r"^\d\d:\d\d:\d\d\.\d{3} entered the log$"))
        alice.type("/why carol\n")
        alice.sees(row("^carol has sent nothing yet$"))
        alice.type("/who\n")
        alice.sees(row(r"^bob, heard \d+ s ago [(](message|sync)[)]$"))
        alice.type("hello\n")
        alice.sees(row("alice hello"))
        alice.type("/why\n")
        alice.sees(row("^“hello”: "))
        alice.sees(row("^>$"))
        alice.type("/dance\n")
        alice.sees(row("/dance is not a command"))
        alice.type("//slash\n")
        bob.event("message_received", payload="L3NsYXNo")
        alice.type("/quit\n")
        assert alice.process.wait() == 0
        assert alice.echoes()


def test_invite_shows_a_text_and_a_code_by_which_another_one_joins(
    address: str, tmp_path: Path
) -> None:
    with chatting(address, "invited", tmp_path) as (alice, _):
        alice.type("/invite key\n")
        alice.sees(row("`key` needs an encryption"))
        alice.type("/invite\n")
        text = f"reliable-channel:?v=1&channel_id=invited&node={address}"
        rows = alice.sees(lambda rows: text in "".join(one.strip() for one in rows))
        assert sum("█" in one for one in rows) > 10
        invitation = tmp_path / "invitation.txt"
        invitation.write_text(text)
        with Person("chat", "--join", f"@{invitation}", "--sender-id", "carol") as carol:
            carol.sees(lambda rows: row("channel invited on")(rows) and row("^>")(rows))
            carol.type("hello\n")
            alice.sees(row("carol hello"))


def test_history_ends_where_it_says_and_names_who_was_there(address: str, tmp_path: Path) -> None:
    with chatting(address, "history", tmp_path) as (alice, bob):
        bob.send("before")
        alice.sees(row("bob before"))
        alice.type("/quit\n")
        alice.process.wait()
    with chatting(address, "history", tmp_path) as (alice, bob):
        rows = alice.sees(row("history ends here; with bob"))
        assert [one for one in rows if "bob before" in one]
        bob.send("after")
        rows = alice.sees(row("bob after"))
        end = next(number for number, one in enumerate(rows) if "history ends" in one)
        assert "bob before" in rows[end - 1]
        assert any("bob after" in one for one in rows[end:])


def test_a_newcomer_sees_where_the_history_ends(address: str, tmp_path: Path) -> None:
    with peers(flags(address, "newcomer", "bob")) as (bob,):
        bob.send("before", ref="first")
        bob.event("message_sent")
    with chatting(address, "newcomer", tmp_path) as (alice, _):
        rows = alice.sees(row("bob before"))
        assert not row("bob is here|history ends")(rows)  # an old message is no sign of life
        alice.type("hello\n")
        rows = alice.sees(row("alice hello"))
        before, end, hello = (
            next(number for number, one in enumerate(rows) if text in one)
            for text in ("bob before", "── history ends here; with bob ──", "alice hello")
        )
        assert before < end < hello


def test_it_follows_a_resize(address: str, tmp_path: Path) -> None:
    with chatting(address, "resize", tmp_path) as (alice, bob):
        alice.type("hello\n")
        alice.sees(row("alice hello"))
        alice.sees(row("^>$"))  # what is typed before would be echoed twice
        alice.type("half a li")
        alice.sees(row("^> half a li$"))
        size = struct.pack("HHHH", 25, 40, 0, 0)
        fcntl.ioctl(alice.theirs, termios.TIOCSWINSZ, size)
        alice.process.send_signal(signal.SIGWINCH)
        bob.send("a long message that takes more than one row")
        alice.until("\x1b[2J")
        rows = alice.sees(row("^    more than one row$"))
        assert max(len(one) for one in rows if "a long" in one) <= 40


@pytest.mark.parametrize("text", ["x" * 150, "ünïcödé 漢字 " * 12])
def test_a_line_longer_than_the_terminal_is_shown_once(
    text: str, address: str, tmp_path: Path
) -> None:
    with chatting(address, f"long {len(text)}", tmp_path) as (alice, bob):
        alice.type(f"{text}\n")
        bob.event("message_received")
        bob.send("got it")
        rows = alice.sees(row("bob got it"))
        assert len([one for one in rows if one.startswith(("✓", "·"))]) == 1
        assert [one for one in rows if one.startswith(f"> {text[:5]}")] == []


def test_what_is_remembered_of_own_messages_is_bounded() -> None:
    own = OwnMessages()
    for number in range(2 * REMEMBERED):
        own.sent(str(number), "x", None, 0)
    assert own.acknowledged("0", "bob") is None
    assert own.acknowledged(str(2 * REMEMBERED - 1), "bob") is not None
    assert list(own.why(WORKS, 1_000))[-1] == "the channel can send and receive"


def test_why_names_what_does_not_work() -> None:
    own = OwnMessages()
    assert next(own.why(WORKS, 0)) == "you have sent nothing yet"
    own.sent("m", "hello", None, 0)
    away = ChannelHealth("c", "a", True, False, ("send does not work: away",), missing=2)
    texts = list(own.why(away, 5_000))
    assert texts[0] == "“hello”: typed 5 s ago, no node has taken it yet"
    assert "send does not work: away" in texts and texts[-1].startswith("2 message(s)")
    own.published("m")
    assert "published 5 s ago" in next(own.why(WORKS, 5_000))
    own.failed("m", "refused")
    assert next(own.why(WORKS, 5_000)) == "“hello”: failed, refused"
