"""Command `reliable-channel node`, which runs the embedded Waku node as a server.

A flag for an option of `NodeOptions` or `Listen` has the type and the default of the option.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import anyio
import typer

from waku.node.options import Behaviour, NodeOptions

from ..config import PREFIX, settings, variable
from .console import err
from .early_sockets import BOUND, HOST, PORT
from .personal import data_directory

if TYPE_CHECKING:
    from waku.node import Listen, ServiceKind

Texts = list[str]
Flag = tuple[type, str, str]
"""Type, name and help text of a flag."""

OPTIONS: Final[dict[str, Flag]] = {
    "cluster_id": (int, "--cluster-id", "The network's cluster."),
    "num_shards": (int, "--num-shards", "The cluster's shards."),
    "rln": (bool, "--rln/--no-rln", "--no-rln lets the nodes of a private cluster 1 relay."),
    "store_path": (Path, "--store", "SQLite file for the message store; in memory if absent."),
    "messaging": (bool, "--messaging/--no-messaging", "Serve logos-delivery's /messaging/v1, too."),
    "cache_capacity": (int, "--cache-capacity", "Messages kept for a reader; the oldest give way."),
    "behave_as": (cast("type", Behaviour), "--behave-as", "Be as unkind as that node, for tests."),
    "relay_allow": (Texts, "--relay-allow", "Peer id that may relay; without it all peers may."),
    "allow_hosts": (Texts, "--allow-host", "Name by which clients call this node, unless local."),
    "allow_origins": (Texts, "--allow-origin", "Web page that may call, https://…; * is any."),
    "token": (str, "--token", "Answer only clients that send it, as http://:TOKEN@host:port."),
    "admin": (bool, "--admin/--no-admin", "Serve /admin/v1, which connects the node to peers."),
}
"""Flags for fields of `NodeOptions`."""
LISTEN: Final[dict[str, Flag]] = {
    "addresses": (Texts, "--listen", "Address for libp2p peers: /ip4/0.0.0.0/tcp/60000, …/ws."),
    "announce": (Texts, "--announce", "Address that peers are given instead of those."),
    "identity": (Path, "--identity", "File of the node's key; node.key among the program's data."),
    "tls_certificate": (Path, "--tls-certificate", "Certificate chain (PEM), for …/wss."),
    "tls_key": (Path, "--tls-key", "Private key (PEM) of the certificate."),
    "known_peers": (Texts, "--known-peer", "Record (enr:…) of a node, for peers that ask."),
}
"""Flags for fields of `Listen`."""
SERVICES: Final[dict["ServiceKind", str]] = {
    "lightpush": "light push",
    "filter": "filter",
    "store": "Store",
}


def register(app: typer.Typer) -> None:
    app.command(name="node")(_with_flags())


def configured(names: Mapping[str, bool], file: Path | None) -> dict[str, Any]:
    """Return the options in the table `[node]` of a file, overridden by the environment.

    `names` tells which options accept several values.

    Raises:
        ValueError, OSError: as `reliable_channel.config.settings`.
    """
    found = settings("node", names, file)
    for name in names:
        text = variable(f"{PREFIX}NODE_{name.upper()}")
        # Kubernetes sets …_PORT=tcp://10.0.0.1:8645 for a service named reliable-channel-node.
        if text and not (name == "port" and text.startswith("tcp://")):
            found[name] = text.split() if names[name] else text
    return found


def _configure(context: typer.Context, file: Path | None) -> None:
    names = {str(one.name): getattr(one, "multiple", False) for one in context.command.params}
    context.default_map = configured(names, file)


def node(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = HOST,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the REST API (0: a free one).")
    ] = PORT,
    relay_peer: Annotated[
        Texts | None,
        typer.Option(
            help="Multiaddress of a relay peer (another embedded node, go-waku, nwaku), or an"
            " enrtree://… list. Only on clusters without RLN."
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="Named network, such as status.prod, or a TOML file: its cluster, shards and"
            " greatest message."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address of the node as a JSON line.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            is_eager=True,
            expose_value=False,
            callback=_configure,
            metavar="FILE",
            help=(
                "TOML file with a table [node]. Environment variables such as "
                "RELIABLE_CHANNEL_NODE_PORT=8645 override the file."
            ),
        ),
    ] = None,
    **flags: Any,
) -> None:
    """Run a small Waku node: the REST API of nwaku, a message store, and with --listen and
    --relay-peer a node among libp2p peers."""
    from waku.node import serve

    given = {name: one for name, one in flags.items() if one not in (None, [])}
    make = NodeOptions if network is None else partial(NodeOptions.of_network, network)
    options = make(**_values(OPTIONS, given))

    def listening(addresses: tuple[str, ...]) -> None:
        for address in addresses:
            typer.echo(f"libp2p peers reach it at {address}")

    def started(address: str) -> None:
        told = json.dumps({"event": "listening", "address": address})
        try:
            typer.echo(told if as_json else f"listening on {address}")
        except BrokenPipeError as error:
            raise OSError(
                f"standard output is closed, so the node cannot print its address ({address}); "
                "redirect the output to a file, or to /dev/null"
            ) from error
        if as_json:
            return
        err.print(f"the API is described at {address}/docs; stop with Ctrl-C", style="dim")

    async def main() -> None:
        await serve(
            options,
            host=host,
            port=port,
            listen=_listen(_values(LISTEN, given)),
            relay_peers=relay_peer or (),
            service_nodes={
                kind: given[name] for kind in SERVICES if (name := f"{kind}_node") in given
            },
            started=started,
            listening=listening,
            bound=BOUND,
        )

    anyio.run(main)


def _listen(values: dict[str, Any]) -> "Listen | None":
    if "addresses" not in values:
        return None
    from waku.node import CannotListen

    try:
        from waku.node import Listen
    except ImportError as error:
        raise CannotListen(str(error)) from error
    return Listen(**{"identity": data_directory() / "node.key", "bound": tuple(BOUND), **values})


def _values(flags: Mapping[str, Flag], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given, by the names of the fields."""
    found = {
        field: given[_parameter(flag)] for field, flag in flags.items() if _parameter(flag) in given
    }
    return {
        field: tuple(value) if isinstance(value, list) else value for field, value in found.items()
    }


def _parameter(flag: Flag) -> str:
    return flag[1].partition("/")[0].removeprefix("--").replace("-", "_")


def _with_flags() -> Any:
    """The command with a parameter for each flag of the tables."""
    defaults = {field.name: field.default for field in fields(NodeOptions)}
    services = {
        kind: (str, f"--{kind}-node", f"Only peer to ask for {name}: a multiaddress with its id.")
        for kind, name in SERVICES.items()
    }
    parameters = [
        parameter
        for parameter in inspect.signature(node, eval_str=True).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    for field, flag in [*OPTIONS.items(), *LISTEN.items(), *services.items()]:
        kind, name, text = flag
        default = defaults.get(field) if field in OPTIONS else None
        shown = "" if default in (None, (), False) or kind is Path else f" [default: {default}]"
        option = typer.Option(name, help=text + shown, show_default=False)
        parameters.append(
            inspect.Parameter(
                _parameter(flag),
                inspect.Parameter.KEYWORD_ONLY,
                annotation=Annotated[kind | None, option],
                default=None,
            )
        )

    def command(**values: Any) -> None:
        node(**values)

    command.__doc__ = node.__doc__
    keyword_only = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    command.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in keyword_only}
    return command
