"""Command `doctor`, which checks the machine, then the channel, then its nodes. The command checks
the objects that a channel would use, so it reads private attributes.
"""

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import typer
from rich.text import Text

from ..._contracts.finding import Finding, Level
from ..._terminal_text import printable
from ...errors import ChannelUnavailable, PluginError, ReliableChannelError, StateError
from ...transport.addresses import LIBP2P, masked_address
from ..channel_flags import ChannelArguments, with_channel_flags
from ..console import out, text_of
from ..exit_codes import ExitCode
from ..personal import personal_state
from .findings import Findings
from .machine import examine_environment, examine_plugins, examine_state
from .plugin_checks import examine_by_plugins

if TYPE_CHECKING:
    from ...channel import ReliableChannel

_SIGNS: Final[dict[Level, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "note": ("·", "dim"),
    "warning": ("!", "yellow"),
    "problem": ("✗", "red"),
}
NOBODY: Final = "doctor"
"""Sender id that the doctor uses if no sender id is given."""
REST: Final = ("http://", "https://", "waku+http://", "waku+https://")


def register(app: typer.Typer) -> None:
    app.command()(with_channel_flags(doctor, needs_sender=False))


def doctor(
    arguments: ChannelArguments,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish/--no-publish",
            help=(
                "Send a small test message on the topic of the channel. Channels ignore the "
                "message."
            ),
        ),
    ] = True,
    wait: Annotated[
        float, typer.Option(min=0.1, help="Number of seconds to wait for the test message.")
    ] = 5.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON line for each finding.")
    ] = False,
) -> None:
    """Find the problems of a set-up, and how to solve them.

    Give `doctor` the flags of the command that does not work. The exit status is 1 if there is a
    problem.
    """
    findings = Findings()
    examine_environment(findings, os.environ)
    examine_plugins(findings)
    channel = _examine_channel(findings, arguments)
    if channel is not None:
        if arguments.names_sender:
            examine_state(findings, channel._state, (channel.channel_id, channel.sender_id))
        else:
            advice = "give --sender-id NAME to have it examined"
            findings.add("note", "state", "state", "not examined: it belongs to a sender", advice)
        anyio.run(_examine_network, findings, channel, publish, wait)
    examine_by_plugins(findings, arguments.nodes, arguments.config)
    for finding in findings.found:
        if as_json:
            typer.echo(json.dumps(asdict(finding)))
        else:
            _show(finding)
    raise typer.Exit(ExitCode.FAILED if findings.worst == "problem" else ExitCode.DONE)


def _examine_channel(findings: Findings, arguments: ChannelArguments) -> "ReliableChannel | None":
    """Make the channel that the flags describe, as any command would."""
    try:
        if not arguments.names_sender:
            return arguments.of_sender(NOBODY).channel()
        return arguments.channel(default_state=personal_state(), wait_for_node=False)
    except (ValueError, TypeError, PluginError, ReliableChannelError) as error:
        advice = "see `reliable-channel listen --help-all`, docs/reference.md"
        findings.add("problem", "options", "options of the channel", text_of(error), advice)
        return None


async def _examine_network(
    findings: Findings, channel: "ReliableChannel", publish: bool, wait_s: float
) -> None:
    from .encryption import examine_encryption
    from .messaging import SCHEME, examine_messaging
    from .nodes import examine_nodes

    settings = channel._settings
    if settings.network is not None:
        _examine_rln(findings, settings.network)
    rest = [url for url in channel._nodes if url.lower().startswith(REST)]
    urls = [url.removeprefix("waku+") for url in rest]
    await examine_nodes(findings, urls, settings, publish=publish, wait_s=wait_s)
    messaging = [url for url in channel._nodes if url.lower().startswith(SCHEME)]
    await examine_messaging(findings, messaging, settings, publish=publish, wait_s=wait_s)
    peers = [url for url in channel._nodes if url.startswith(LIBP2P)]
    if peers:
        from .service_peers import examine_service_peers

        await examine_service_peers(findings, peers, settings, publish=publish, wait_s=wait_s)
    await examine_encryption(findings, channel)
    if others := [url for url in channel._nodes if url not in (*rest, *messaging, *peers)]:
        await _examine_transport(findings, channel, others, wait_s)


def _examine_rln(findings: Findings, network: str) -> None:
    from waku.discovery import find_network

    if find_network(network).rln:
        text = "each message needs an RLN proof, which a channel cannot make"
        advice = "give nodes that attach proofs to the messages of clients, or another network"
        findings.add("warning", "network.rln", network, text, advice)


async def _examine_transport(
    findings: Findings, channel: "ReliableChannel", urls: list[str], wait_s: float
) -> None:
    """Open the channel itself: other networks have no API to ask."""
    where = ", ".join(map(masked_address, urls))
    try:
        with anyio.fail_after(10 * wait_s):
            async with channel:
                nodes = [node for node in channel.health().nodes if node.state != "healthy"]
    except (ChannelUnavailable, StateError, TimeoutError) as error:
        text = str(error) or f"it could not be opened within {10 * wait_s:g} s"
        findings.add("problem", "transport", where, text, "check its address and its plugin")
        return
    for node in nodes:
        findings.add("warning", "transport", node.address, node.last_error or node.state)
    findings.add("ok", "transport", where, "the channel opens")


def _show(finding: Finding) -> None:
    sign, style = _SIGNS[finding.level]
    text = Text.assemble(
        (sign, style), " ", (printable(finding.where), "bold"), ": ", printable(finding.text)
    )
    out.print(text, soft_wrap=True, highlight=False)
    if finding.advice:
        out.print(Text(f"    → {printable(finding.advice)}"), soft_wrap=True, highlight=False)
