"""Check of the membership of a configured bot, for `reliable-channel doctor`."""

from pathlib import Path
from typing import Any, Final

import anyio

from reliable_channel.spi import Finding, Level
from waku.errors import WakuError

from ..bot.bot import StatusBot
from ..bot.membership import StoredStanding
from ..bot.options import bot_settings

CHECK: Final = "status.membership"
_LEVELS: Final[dict[StoredStanding, Level]] = {
    StoredStanding.MEMBER: "ok",
    StoredStanding.NOT_A_MEMBER: "problem",
    StoredStanding.CLOSED: "problem",
    StoredStanding.UNKNOWN: "warning",
}


def check_membership(nodes: tuple[str, ...], config: Path | None) -> list[Finding]:
    """Return findings about the membership of a bot in its community, from Store. If no `community`
    is configured, the check returns no findings.

    Args:
        nodes: what the doctor was given, for a bot that is configured without a node.
        config: a TOML file with a table `[bot]`; None for that of `RELIABLE_CHANNEL_CONFIG`.
    """
    where = "[bot]"
    try:
        given, _ = bot_settings(config)
        if "community" not in given:
            return []
        where = given["community"]
        needs_node = nodes and not given.keys() & {"node", "network"}
        lent: dict[str, Any] = {"node": nodes} if needs_node else {}
        bot = StatusBot.configured(config, **lent)
        findings = anyio.run(bot.examine)
    except (ValueError, OSError) as error:
        advice = "see docs/status-framework.md, Settings; `reliable-channel bot key` makes a key"
        return [Finding("problem", CHECK, where, str(error), advice)]
    except WakuError as error:
        advice = "the bot needs a node with Store of Status' network: RELIABLE_CHANNEL_BOT_NODE"
        return [Finding("problem", CHECK, where, f"Store cannot be asked: {error}", advice)]
    return [
        Finding(_LEVELS[one.place], CHECK, str(one.community), one.place.value, one.advice)
        for one in findings
    ]
