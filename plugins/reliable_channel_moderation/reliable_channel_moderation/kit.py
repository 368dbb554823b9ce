"""`Moderation`, which adds rules to a bot, with commands for moderators and appeals for users."""

from datetime import timedelta
from pathlib import Path
from typing import Final

from reliable_channel_status import NotControlNode, PublicKey, mention
from reliable_channel_status.bot import (
    Cooldown,
    Edit,
    JoinRequest,
    Message,
    OwnedCommunity,
    Router,
    by_moderator,
)

from .audit_log import AuditLog
from .judge import Judge, Rule, Seen, Verdict
from .policy import Policy
from .record import Case, Record

TICK_S: Final = 10.0
"""Polling interval for mutes that end."""
MAX_SHOWN: Final = 10
MAX_QUOTED: Final = 300
_APPEALS: Final = Cooldown(3, 3600)


class Moderation:
    """Rules, cases, appeals and audit log of a bot, added by `bot.include(moderation.router)`.

    A bot that runs the community (`community_key_file`) mutes, kicks and bans by its description.
    Other bots delete messages of muted users, if they are moderators. A bot that does not run the
    community asks its moderators to kick or ban a user.

    Args:
        mods: the channel of the moderators, by uuid or name: it reads every case.
        policy: what is allowed.
        audit_file: the audit log.
        admits: with a community that the bot runs, let those in that ask, except in a raid.
    """

    def __init__(
        self,
        mods: str,
        *,
        policy: Policy | None = None,
        audit_file: str | Path = "moderation.jsonl",
        admits: bool = False,
    ) -> None:
        self.policy = policy or Policy()
        self.router = Router()
        self.record = Record(lambda: self.router.bot, self.policy)
        self.log = AuditLog(Path(audit_file))
        self._mods = mods
        self._admits = admits
        self._judge = Judge(self.policy)
        self._was_raid = False
        self._raided = 0
        router = self.router
        router.on_message(self._message)
        router.on_edit(self._edit)
        router.on_join_request(self._join_request)
        router.on_direct_message(self._direct)
        router.every(seconds=TICK_S)(self._tick)
        router.command("appeal", cooldown=_APPEALS)(self._appeal)
        group = router.command_group("mod", "Moderation.", checks=[by_moderator])
        for function in (
            self._cases,
            self._case,
            self._pardon,
            self._uphold,
            self._mute,
            self._unmute,
            self._ban,
            self._unban,
            self._raid,
            self._log,
        ):
            group.command(function.__name__.removeprefix("_"))(function)

    # -- what users do ----------------------------------------------------------------------------

    async def _message(self, message: Message) -> None:
        if message.by_moderator or message.room.name == self._mods:
            return
        user, now_ms = message.author.hex, self.router.bot.now_ms()
        if (case := self.record.about(message.message_id)) is not None:
            await self._act(message, case)  # again, after a crash
            return
        if self.record.muted.get(user, 0) > now_ms:
            self._judge.newcomer(user, now_ms)
            await message.delete()
            return
        verdict = self._judge.judge(
            Seen(user, message.text, len(message.mentions), message.payload.clock, now_ms)
        )
        await self._report_raid()
        if verdict is not None and verdict.rule is Rule.RAID:
            self._raided += 1  # no answer to each: a raid wants to be loud
            await message.delete()
        elif verdict is not None:
            await self._act(message, self._open(message, verdict))

    async def _edit(self, edit: Edit) -> None:
        """A link may come in by an edit."""
        if edit.by_moderator or edit.room.name == self._mods:
            return
        verdict = self._judge.link(edit.after.text)
        if verdict is not None and self.record.about(edit.message_id) is None:
            await self._act(edit, self._open(edit, verdict))

    async def _join_request(self, request: JoinRequest) -> None:
        now_ms = self.router.bot.now_ms()
        is_newcomer = self._judge.newcomer(request.author.hex, now_ms)
        await self._report_raid()
        if is_newcomer and self._judge.is_raid(now_ms):
            text = f"{mention(request.author)} asks to join during a raid; decide in the client."
            await self._say_to_mods(text, f"join {request.author.hex}")
        elif self._admits:
            await request.answer(accepted=True)

    async def _direct(self, message: Message) -> str | None:
        if not self.record.points(message.author.hex):
            return None
        return "To appeal, write: !appeal NUMBER why"

    async def _appeal(self, message: Message, case: int, *, why: str) -> str:
        """Asks the moderators to look at a case again."""
        found = self.record.case(case)
        if found is None or found.user != message.author.hex:
            return f"You have no case {case}."
        if found.state != "open":
            return f"Case {case} is {found.state}."
        self.record.appeal(found, why)
        self.log.add(self._now(), "appeal", case=case, by=found.user, user=found.user, why=why)
        text = f"{mention(message.author)} appeals case {case}: {why[:MAX_QUOTED]}"
        await self._say_to_mods(
            f"{text}\n!mod pardon {case}, or !mod uphold {case}", f"appeal {case}"
        )
        return f"The moderators read your appeal of case {case}."

    # -- what moderators do -----------------------------------------------------------------------

    async def _cases(self, message: Message, user: PublicKey | None = None) -> str:
        """Lists the last cases, of a user or of all."""
        lines: list[str] = []
        for number in range(self.record.last, max(0, self.record.last - 100), -1):
            case = self.record.case(number)
            if case is not None and (user is None or case.user == user.hex):
                lines.append(self._line(case))
            if len(lines) == MAX_SHOWN:
                break
        return "\n".join(lines) or "There are no cases."

    async def _case(self, message: Message, number: int) -> str:
        """Shows a case."""
        case = self.record.case(number)
        if case is None:
            return f"There is no case {number}."
        return "\n".join(filter(None, [self._line(case), case.appeal and f"Appeal: {case.appeal}"]))

    async def _pardon(self, message: Message, number: int, *, why: str = "") -> str:
        """Takes a case back, with its points, silence and ban."""
        case = self.record.case(number)
        if case is None:
            return f"There is no case {number}."
        if case.state == "pardoned":
            return f"Case {number} is pardoned."
        self.record.decide(case, is_pardoned=True)
        self._write("pardon", message, case.user, why, case=number)
        await self._silence(case.user, 0)
        if case.action == "ban":
            await self._try(case.user, "unban")
        await self._notify(case.user, f"Case {number} is pardoned. {why}")
        return f"Case {number} is pardoned."

    async def _uphold(self, message: Message, number: int, *, why: str = "") -> str:
        """Rejects an appeal."""
        case = self.record.case(number)
        if case is None or case.state != "appealed":
            return f"There is no appeal of case {number}."
        self.record.decide(case, is_pardoned=False)
        self._write("uphold", message, case.user, why, case=number)
        await self._notify(case.user, f"Your appeal of case {number} is rejected. {why}")
        return f"Case {number} is upheld."

    async def _mute(self, message: Message, user: PublicKey, time: timedelta, *, why: str) -> str:
        """Silences a user for a time."""
        self._write("mute", message, user.hex, why)
        await self._silence(user.hex, self._now() + round(time.total_seconds() * 1000))
        return f"{self._name(user.hex)} is muted for {time}."

    async def _unmute(self, message: Message, user: PublicKey) -> str:
        """Ends a user's silence."""
        self._write("unmute", message, user.hex, "")
        await self._silence(user.hex, 0)
        return f"{self._name(user.hex)} is not muted."

    async def _ban(self, message: Message, user: PublicKey, *, why: str) -> str:
        """Bans a user, where the bot runs the community."""
        if why_not := await self._try(user.hex, "ban"):
            return why_not
        self._write("ban", message, user.hex, why)
        return f"{self._name(user.hex)} is banned."

    async def _unban(self, message: Message, user: PublicKey) -> str:
        """Ends a ban, where the bot runs the community."""
        if why_not := await self._try(user.hex, "unban"):
            return why_not
        self._write("unban", message, user.hex, "")
        return f"{self._name(user.hex)} is not banned."

    async def _raid(self, message: Message, is_on: bool) -> str:
        """Begins or ends the rules of a raid."""
        self._judge.set_raid(self._now(), is_on=is_on)
        self._write("raid on" if is_on else "raid off", message, "", "")
        await self._report_raid()
        return "Messages of newcomers are deleted." if is_on else "Newcomers may write."

    async def _log(self, message: Message, count: int = 5) -> str:
        """Shows the last lines of the audit log."""
        entries = self.log.last(max(1, min(count, MAX_SHOWN)))
        lines = (f"{e.action} {e.case or ''} by {self._name(e.by)}: {e.why}" for e in entries)
        return "\n".join(lines) or "The log is empty."

    # -- consequences -----------------------------------------------------------------------------

    def _open(self, about: Message | Edit, verdict: Verdict) -> Case:
        return self.record.open(
            at_ms=self._now(),
            user=about.author.hex,
            message_id=about.message_id,
            chat=about.room.name,
            rule=verdict.rule.value,
            why=verdict.why,
            points=verdict.points,
            is_reported=verdict.rule is Rule.LATE,
        )

    async def _act(self, about: Message | Edit, case: Case) -> None:
        """Do what a case asks for; done again after a crash, it says nothing twice."""
        if case.action != "report":
            await about.delete()
        self.log.add(case.at_ms, case.action, case=case.number, user=case.user, why=case.why)
        text, failed = "", ""
        if case.action in ("mute", "kick", "ban"):
            await self._silence(case.user, case.at_ms + round(self.policy.mute_s * 1000))
        if case.action in ("kick", "ban") and (why_not := await self._try(case.user, case.action)):
            failed = f"Please {case.action} the user: {why_not}"
        await self._say_to_mods(
            "\n".join(filter(None, [self._line(case), failed])), f"case {case.number}"
        )
        if case.action != "report":
            text = f"{mention(about.author)}: {case.why} ({case.action}). "
            text += f"To appeal, write: !appeal {case.number} why"
            await about.channel.send(text, once=f"moderation case {case.number}")

    async def _silence(self, user: str, until_ms: int) -> None:
        """Mute a user until a time; 0 ends it."""
        self.record.mute(user, until_ms)
        owned = self._owned()
        if owned is not None and PublicKey.parse(user) in owned.members:
            await owned.mute(PublicKey.parse(user), is_muted=bool(until_ms))

    async def _try(self, user: str, action: str) -> str:
        """Kick, ban or unban; why it cannot be done, or nothing."""
        owned = self._owned()
        if owned is None:
            return "the bot does not run the community."
        do = {"kick": owned.kick, "ban": owned.ban, "unban": owned.unban}[action]
        try:
            await do(PublicKey.parse(user))
        except (NotControlNode, ValueError) as error:
            return f"{error}."
        return ""

    async def _tick(self) -> None:
        """End silences whose time has come, and raids."""
        await self._report_raid()
        now_ms = self._now()
        for user, until_ms in self.record.muted.items():
            if until_ms <= now_ms:
                await self._silence(user, 0)

    async def _report_raid(self) -> None:
        """Report the beginning and the end of a raid, once each."""
        now_ms = self._now()
        is_raid = self._judge.is_raid(now_ms)
        if is_raid == self._was_raid:
            return
        self._was_raid = is_raid
        if is_raid:
            why = f"{self.policy.raid_newcomers} newcomers"
            text = (
                "A raid: messages of newcomers are deleted until it is quiet. End it: !mod raid no"
            )
        else:
            why = f"{self._raided} messages were deleted"
            text, self._raided = f"The raid is over; {why}.", 0
        self.log.add(now_ms, "raid" if is_raid else "raid over", why=why)
        await self._say_to_mods(text, f"raid {is_raid} {now_ms}")

    # -- words ------------------------------------------------------------------------------------

    async def _say_to_mods(self, text: str, once: str) -> None:
        await self.router.bot.channel(self._mods).send(text, once=f"moderation {once}")

    async def _notify(self, user: str, text: str) -> None:
        await self.router.bot.direct(user).send(text.strip())

    def _write(self, action: str, message: Message, user: str, why: str, *, case: int = 0) -> None:
        by = message.author.hex
        self.log.add(self._now(), action, case=case, by=by, user=user, why=why)

    def _line(self, case: Case) -> str:
        who = mention(PublicKey.parse(case.user))
        return f"Case {case.number}, {case.state}: {who}: {case.rule}, {case.why} -> {case.action}"

    def _name(self, user: str) -> str:
        return user if user == "bot" else self.router.bot.name_of(PublicKey.parse(user))

    def _owned(self) -> OwnedCommunity | None:
        try:
            owned = self.router.bot.owned
        except ValueError:
            return None
        return owned if owned.is_active else None

    def _now(self) -> int:
        return self.router.bot.now_ms()
