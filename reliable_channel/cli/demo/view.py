"""Display of the demo, with progress while it runs, and a table at its end."""

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .processes import PeerProcess


def progress(peers: Sequence[PeerProcess], total: int, headline: str) -> RenderableType:
    """Return one line for each participant, with the share of messages that it has."""
    table = Table.grid(padding=(0, 2))
    for peer in peers:
        have = peer.sent + peer.received
        if peer.cut_off:
            state = Text("cut off", style="bold red")
        elif have < total:
            state = Text(f"{len(peer.missing)} known to be missing", style="yellow")
        else:
            state = Text("has everything", style="green")
        table.add_row(
            Text(peer.name, style="bold"),
            ProgressBar(total=total, completed=have, width=40),
            f"{have:>4}/{total}",
            state,
        )
    return Group(Text(headline, style="dim"), table)


def summary(peers: Sequence[PeerProcess]) -> Table:
    """Return a table with the numbers of events of each participant."""
    table = Table(title="What the network did, and what came of it", box=SIMPLE_HEAD)
    table.add_column("\nname", no_wrap=True)
    for heading in (
        "\nsent",
        "lost on\nthe way",
        "retrieved\nfrom Store",
        "repaired\nby peers",
        "duplicates\nswallowed",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("sha256\nof the log", no_wrap=True)
    same = len({peer.digest for peer in peers}) == 1
    for peer in peers:
        *figures, digest = figures_of(peer).values()
        style = "green" if same else "red"
        table.add_row(*map(str, figures), Text(f"{digest:.12}…", style=style))
    return table


def figures_of(peer: PeerProcess) -> dict[str, Any]:
    """Return the numbers of events of a participant, and the digest of its log."""
    transport, counters = peer.statistics["transport"], peer.statistics["sds"]["counters"]
    return {
        "name": peer.name,
        "sent": peer.sent,
        "lost": peer.statistics["dropped_incoming"],
        "retrieved": transport["retrieved"],
        "repaired": transport["repaired"],
        "duplicates": counters["duplicates"] + transport["repeated"],
        "digest": peer.digest,
    }


COLUMNS = """[bold]The columns[/]
  [cyan]lost on the way[/]      copies that never reached it, thrown away on purpose
  [cyan]retrieved from Store[/] missing messages from the Store, which carol and dave do not ask
  [cyan]repaired by peers[/]    missing messages that another participant broadcast again
  [cyan]duplicates swallowed[/] copies of what it had; `auto` sends some ahead of requests
"""
NEXT = """[bold]What to try next[/]
  in three terminals:
    [cyan]{program} node[/]
    [cyan]{program} chat --preset auto --sender-id alice[/]
    [cyan]{program} chat --preset auto --sender-id bob --drop-incoming 0.3[/]
  in Python: docs/start/tutorial.md; how it works: docs/understand/a-message.md
  other losses:
    [cyan]{program} demo --loss 0.5 --messages 60 --seed {seed}[/]"""
