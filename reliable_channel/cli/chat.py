"""Command `reliable-channel chat`, to type and read messages in a terminal."""

import logging
import signal
import sys
import time
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import typer
from rich.text import Text

from .._program import run
from .._terminal_text import printable, printable_name
from ..diagnostics import TransportDegraded, TransportRecovered
from ..errors import SdsError, StateError
from ..events import (
    AnyEvent,
    DeliveryFailed,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    MessageSent,
    ParticipantSeen,
    ParticipantSilent,
    SendFailed,
    StateDegraded,
)
from .channel_flags import ChannelArguments, with_channel_flags
from .console import needs_input, out, terminal_restored
from .own_messages import EXPLAINED, OwnMessages
from .personal import personal_channel
from .screen import Screen

if TYPE_CHECKING:
    from ..channel import ReliableChannel

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
PROMPT = "> "
EARLIER = 10
"""Number of earlier messages that are shown at the start."""
EARLIEST_MS: Final = 1_600_000_000_000
"""Smallest Lamport timestamp (ms) that is shown as a time of day. The clock of a sender with a
smaller timestamp counts from 0."""
LATE_MS: Final = 1_000
"""Delay (ms) from which `/why` explains a message of another participant."""
NEWEST: Final = 1_000
"""Number of participants whose last message `/why` can explain."""
HELP: Final = (
    "/who  participants, and when each was heard last",
    "/why  what happened to your last messages, and what does not work",
    "/why NAME  how the last message of a participant came, and why it was late",
    "/invite  an invitation to this channel, as a text and a QR code; /invite key with the key",
    "/quit leaves, as Ctrl-D does; //text sends a text that begins with /",
)
PENDING, TICK, CROSS = ("·", "dim"), ("✓", "green"), ("✗", "red")


def register(app: typer.Typer) -> None:
    app.command()(with_channel_flags(chat))


def chat(
    arguments: ChannelArguments,
    join: Annotated[
        str | None,
        typer.Option(
            metavar="INVITATION",
            envvar="RELIABLE_CHANNEL_JOIN",
            show_envvar=True,
            help=(
                "Invitation, which `/invite` makes. `@FILE` reads it from a file, `-` from "
                "standard input, because `ps` shows arguments."
            ),
        ),
    ] = None,
) -> None:
    """Chat in a terminal. Each line that you type is sent. A tick means that a peer received it.

    `/who` shows the participants, `/why` explains what happened to your messages, `/help` lists all
    commands.
    """
    needs_input()
    if join is not None:
        arguments = arguments.joined(_read(join))
    with terminal_restored():
        screen = Screen(PROMPT if sys.stdin.isatty() else "")
        if sys.stdout.isatty() and not logging.root.handlers:
            logging.getLogger("reliable_channel").addHandler(ScreenHandler(screen))
        try:
            run(_main, arguments, screen)
        finally:
            if sys.stdin.isatty() and sys.stdout.isatty():
                print()  # noqa: T201 - the shell's prompt begins a line of its own


class ScreenHandler(logging.Handler):
    """Log handler that prints log lines inside the conversation. Any other handler would break the
    lines of the conversation.

    Log records of events are dropped, because the conversation shows the events.
    """

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Show a log record in the conversation."""
        if not hasattr(record, "event"):
            self._screen.show(Text(printable(record.getMessage()), "yellow"))


async def _main(arguments: ChannelArguments, screen: Screen) -> None:
    async with personal_channel(arguments) as channel, anyio.create_task_group() as tasks:
        conversation = ChatScreen(channel, screen)
        conversation.begin()
        tasks.start_soon(conversation.show_events)
        if screen.is_terminal:
            tasks.start_soon(_follow_resizes, screen)
        await conversation.read_lines()
        tasks.cancel_scope.cancel()


async def _follow_resizes(screen: Screen) -> None:
    with anyio.open_signal_receiver(signal.SIGWINCH) as signals:
        async for _ in signals:
            screen.resized()


class ChatScreen:
    """Channel and terminal screen of a chat."""

    def __init__(self, channel: "ReliableChannel", screen: Screen) -> None:
        self.screen = screen
        self._channel = channel
        self._own = OwnMessages()
        self._newest: dict[str, MessageReceived] = {}
        """The last message of each participant."""
        self._begun_ms = _now_ms()
        self._may_be_history = True
        """True if a message may be one that was in Store before this participant came."""
        self._is_history = False
        """True if the last message was one."""

    def begin(self) -> None:
        """Show the channel, the participants, and the last messages."""
        channel, show = self._channel, self.screen.show
        out.print(
            Text.assemble(
                "channel ",
                (printable(channel.channel_id), "bold"),
                f" on {printable(channel.content_topic)}, you are ",
                (printable_name(channel.sender_id), "bold"),
                "\n/help lists commands, Ctrl-D leaves",
            ),
            soft_wrap=True,
        )
        earlier = channel.log(last=EARLIER)
        for entry in earlier:
            clock = _clock(entry.lamport_timestamp)
            show(Text(f"{clock} {printable_name(entry.sender_id)} {_text(entry.content)}", "dim"))
        if earlier:
            self._end_history()

    async def read_lines(self) -> None:
        """Send each typed line, until the input ends."""
        with suppress(ImportError, AttributeError):
            import readline  # gives `input` its line editing

            # Called once the prompt is there; before, nothing has to be kept below other lines.
            readline.set_pre_input_hook(self.screen.typing)
        prompt = PROMPT if sys.stdin.isatty() else ""
        while True:
            try:
                line = await anyio.to_thread.run_sync(input, prompt, abandon_on_cancel=True)
            except EOFError:
                return
            self.screen.typed(line)
            if self.screen.is_terminal and line.startswith("/") and not line.startswith("//"):
                if line.strip() in ("/quit", "/exit"):
                    return
                self._obey(line.strip())
            elif line.strip():
                is_escaped = self.screen.is_terminal and line.startswith("//")
                await self._send(line[1:] if is_escaped else line)

    async def show_events(self) -> None:
        """Show the events of the channel until it is closed."""
        async for event in self._channel.events():
            self._follow_history(event)
            self._note(event)
            if line := _line(event):
                if self._is_history:
                    line.stylize("dim")
                self.screen.show(line)

    def _follow_history(self, event: AnyEvent) -> None:
        """Find out whether a message is older than this session, by its sender's clock.

        To a newcomer Store brings the history, as events. It has ended when a newer message comes.
        """
        if not isinstance(event, MessageReceived):
            return
        is_older = EARLIEST_MS <= event.lamport_timestamp < self._begun_ms
        if self._may_be_history and is_older:
            self._is_history = True
        elif self._is_history:
            self._end_history()

    def _end_history(self) -> None:
        self._may_be_history = self._is_history = False
        if not self.screen.is_terminal:
            return
        others = ", ".join(printable_name(one.sender_id) for one in self._channel.participants())
        with_others = f"; with {others}" if others else ""
        self.screen.show(Text(f"── history ends here{with_others} ──", "dim"))

    async def _send(self, line: str) -> None:
        try:
            request = await self._channel.send(line.encode())
        except (SdsError, StateError, UnicodeEncodeError) as error:
            self.screen.show(Text(f"not sent: {error}", "red"))
            return
        shown = None
        if self._is_history:
            self._end_history()
        if self.screen.is_terminal:
            clock, name = _clock(_now_ms()), printable_name(self._channel.sender_id)
            text = Text.assemble((clock, "dim"), " ", (name, "bold"), f" {printable(line)}")
            shown = self.screen.show(text, PENDING)
        self._own.sent(request.message_id, printable(line), shown, _now_ms())

    def _note(self, event: AnyEvent) -> None:
        """Follow own messages and signs of others."""
        if isinstance(event, MessageReceived):
            self._newest.pop(event.sender_id, None)
            self._newest[event.sender_id] = event
            if len(self._newest) > NEWEST:
                del self._newest[next(iter(self._newest))]
        elif isinstance(event, ParticipantSeen | ParticipantSilent):
            verb = "is here" if isinstance(event, ParticipantSeen) else "is silent"
            if self.screen.is_terminal and not self._is_history:
                self.screen.show(Text(f"{printable_name(event.sender_id)} {verb}", "dim"))
        elif isinstance(event, MessageSent):
            self._own.published(event.message_id)
        elif isinstance(event, MessageAcknowledged):
            own = self._own.acknowledged(event.message_id, event.acknowledged_by)
            if own is None:
                return
            if own.line is None or not self.screen.mark(own.line, *TICK):
                by = printable_name(event.acknowledged_by)
                self.screen.show(Text(f"✓ {by} has: {own.text}", "dim"))
        elif isinstance(event, SendFailed | DeliveryFailed):
            own = self._own.failed(event.message_id, event.reason)
            if own is not None and own.line is not None:
                self.screen.mark(own.line, *CROSS)
            text = own.text if own is not None else ""
            self.screen.show(Text(f"✗ {text}: {printable(event.reason)}", "red"))

    def _obey(self, command: str) -> None:
        show = self.screen.show
        if command == "/who":
            others, now_ms = self._channel.participants(), _now_ms()
            for one in others:
                ago, sign = _ago(now_ms - one.last_heard_ms), one.heard_by.replace("_", " ")
                silent = ", silent" if one.is_silent else ""
                name = printable_name(one.sender_id)
                show(Text(f"{name}, heard {ago} ({sign}){silent}", "dim"))
            if not others:
                show(Text("no other participant was heard yet", "dim"))
        elif command == "/why":
            for text in self._own.why(self._channel.health(), _now_ms()):
                show(Text(printable(text), "dim"))
            self._explain_late()
        elif command.startswith("/why "):
            self._explain(command.removeprefix("/why").strip())
        elif command in ("/invite", "/invite key"):
            self._invite(key=command.endswith("key"))
        else:
            if command != "/help":
                show(Text(f"{printable(command)} is not a command", "red"))
            for text in HELP:
                show(Text(text, "dim"))

    def _invite(self, *, key: bool) -> None:
        try:
            text = self._channel.invite(key=key)
        except ValueError as error:
            self.screen.show(Text(printable(str(error)), "red"))
            return
        import segno

        code = StringIO()
        segno.make(text, error="l", micro=False).terminal(code, border=2, compact=True)
        for line in code.getvalue().splitlines():
            self.screen.show(Text(line))
        self.screen.show(Text(text))

    def _explain_late(self) -> None:
        """Show why the last messages of others were late."""
        for event in list(self._newest.values())[-EXPLAINED:]:
            explained = self._channel.explain(event.message_id)
            if (explained.late_ms or 0) >= LATE_MS:
                name = printable_name(event.sender_id)
                why = f"{name}, “{_text(event.content)}”: {printable(explained.sentence)}"
                self.screen.show(Text(why, "dim"))

    def _explain(self, name: str) -> None:
        """Show how the last message of a participant came, step by step."""
        event = self._newest.get(name)
        if event is None:
            self.screen.show(Text(f"{printable(name)} has sent nothing yet", "dim"))
            return
        explained = self._channel.explain(event.message_id)
        lines = [f"“{_text(event.content)}”: {printable(explained.sentence)}"]
        lines += (f"{_exact(at_ms)} {printable(what)}" for at_ms, what in explained.steps)
        for line in lines:
            self.screen.show(Text(line, "dim"))


def _read(invitation: str) -> str:
    """Return the invitation that the argument names.

    Raises:
        OSError: the file cannot be read.
    """
    if invitation == "-":
        return sys.stdin.readline()
    if invitation.startswith("@"):
        return Path(invitation[1:]).read_text(encoding="utf-8")
    return invitation


def _line(event: AnyEvent) -> Text | None:
    match event:
        case MessageReceived(sender_id=sender, content=content, missing=missing):
            return Text.assemble(
                (_clock(event.lamport_timestamp), "dim"),
                " ",
                (printable_name(sender), COLOURS[sum(sender.encode()) % len(COLOURS)]),
                f" {_text(content)}",
                (f" ({len(missing)} earlier message(s) lost)" if missing else "", "dim"),
            )
        case MessageLost(sender_id=lost_sender):
            author = printable_name(lost_sender) if lost_sender else "a peer"
            return Text(f"a message of {author} is lost", "red")
        case StateDegraded(reason=reason):
            return Text(f"this chat is kept in memory alone: {printable(reason)}", "yellow")
        case TransportDegraded(component=component, reason=reason):
            return Text(f"{component} does not work: {printable(reason)}", "yellow")
        case TransportRecovered(component=component):
            return Text(f"{component} works again", "green")
    return None


def _text(content: bytes) -> str:
    return printable(content.decode(errors="replace"))


def _clock(at_ms: int) -> str:
    try:
        return time.strftime("%H:%M", time.localtime(at_ms / 1000))
    except (OverflowError, ValueError, OSError):  # a Lamport timestamp can be any number
        return "--:--"


def _exact(at_ms: int) -> str:
    try:
        return f"{time.strftime('%H:%M:%S', time.localtime(at_ms / 1000))}.{at_ms % 1000:03}"
    except (OverflowError, ValueError, OSError):
        return "--:--:--"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _ago(ms: int) -> str:
    for unit, length_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= length_ms:
            return f"{ms // length_ms} {unit} ago"
    return f"{max(0, ms) // 1000} s ago"
