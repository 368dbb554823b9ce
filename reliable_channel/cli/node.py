"""`reliable-channel node`: the embedded Waku node as a server."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from waku.node.options import Behaviour

from ..config import PREFIX, settings, variable
from .console import err
from .early_sockets import BOUND, HOST, PORT
from .personal import data_directory


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(node)


def configured(names: Mapping[str, bool], file: Path | None) -> dict[str, Any]:
    """The flags that the table `[node]` of a file gives, and over them the environment.

    `names` says which flags can be repeated.

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
        int, typer.Option(min=0, max=65535, help="Port of the REST API; 0 takes a free one.")
    ] = PORT,
    store: Annotated[
        Path | None, typer.Option(help="SQLite file for the message store; in memory if absent.")
    ] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(help="REST address of another embedded node to exchange messages with."),
    ] = None,
    lightpush_node: Annotated[
        str | None, typer.Option(help="Only node to ask for light push, by its REST address.")
    ] = None,
    filter_node: Annotated[
        str | None, typer.Option(help="Only node to ask for filter, by its REST address.")
    ] = None,
    store_node: Annotated[
        str | None, typer.Option(help="Only node to ask for Store, by its REST address.")
    ] = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            help="Address at which to serve js-waku and other libp2p peers, such as"
            " /ip4/0.0.0.0/tcp/8000/ws; also /tcp/60000 and, with a certificate, /tcp/8443/wss."
        ),
    ] = None,
    announce: Annotated[
        list[str] | None,
        typer.Option(
            help="Address that libp2p peers are given instead, such as"
            " /dns4/node.example/tcp/443/wss."
        ),
    ] = None,
    identity: Annotated[
        Path | None,
        typer.Option(
            help="File of the node's key for libp2p, made if absent; by default node.key among the"
            " program's data."
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="Certificate chain (PEM) for addresses with wss.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="Private key (PEM) of the certificate.")
    ] = None,
    known_peer: Annotated[
        list[str] | None,
        typer.Option(help="Record (enr:…) of another node, given to libp2p peers that ask."),
    ] = None,
    messaging: Annotated[
        bool,
        typer.Option("--messaging", help="Serve /messaging/v1, too, as newer logos-delivery does."),
    ] = False,
    store_sync: Annotated[
        bool,
        typer.Option(
            "--store-sync",
            help="Compare Stores with joined nodes that have this on, too, and exchange the"
            " messages that either lacks.",
        ),
    ] = False,
    store_sync_interval: Annotated[
        float, typer.Option(help="Seconds between two synchronisations, each with one node.")
    ] = 300,
    store_sync_range: Annotated[
        float, typer.Option(help="Compare the messages of this many past seconds.")
    ] = 3600,
    store_sync_relay_jitter: Annotated[
        float,
        typer.Option(help="Seconds that a message waits before it is compared between Stores."),
    ] = 20,
    relay_peer: Annotated[
        list[str] | None,
        typer.Option(
            help="Multiaddress of a go-waku, nwaku or other relay peer whose meshes to join, or an"
            " enrtree://… list of them; on clusters without RLN (not 1)."
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="Named network, such as status.prod, or a TOML file: its cluster, shards and"
            " greatest message."
        ),
    ] = None,
    cluster_id: Annotated[int | None, typer.Option(help="The network's cluster; 1.")] = None,
    num_shards: Annotated[int | None, typer.Option(min=1, help="The cluster's shards; 8.")] = None,
    cache_capacity: Annotated[
        int, typer.Option(help="Messages kept for a reader before the oldest are dropped.")
    ] = 50,
    behave_as: Annotated[
        Behaviour | None,
        typer.Option(help="Treat subscriptions as unkindly as that node does, to test clients."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Name under which clients call this node, such as host.docker.internal; local"
            " names need none."
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="Web page that may call, such as https://app.example; * is any."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Answer only clients that send it: they write http://:TOKEN@host:port. Better "
            "given as RELIABLE_CHANNEL_NODE_TOKEN, which other users of the machine cannot see.",
        ),
    ] = None,
    admin: Annotated[
        bool, typer.Option(help="Serve /admin/v1, through which clients join other nodes.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address as a JSON line.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            is_eager=True,
            expose_value=False,
            callback=_configure,
            metavar="FILE",
            help="A TOML file with a table [node]; RELIABLE_CHANNEL_NODE_PORT=8645 and so on "
            "override it.",
        ),
    ] = None,
) -> None:
    """Run a small Waku node: the REST API of nwaku, a message store, and with --listen a service
    node for js-waku and other light clients."""
    from waku.node import CannotListen, NodeOptions, ServiceKind, serve

    of_network = {"cluster_id": cluster_id, "num_shards": num_shards}
    given: dict[str, Any] = {name: one for name, one in of_network.items() if one is not None}
    make = NodeOptions if network is None else partial(NodeOptions.of_network, network)
    options = make(
        **given,
        cache_capacity=cache_capacity,
        store_path=store or ":memory:",
        behave_as=behave_as,
        allow_hosts=tuple(allow_host or ()),
        allow_origins=tuple(allow_origin or ()),
        token=token,
        admin=admin,
        messaging=messaging,
        store_sync=store_sync,
        store_sync_interval_s=store_sync_interval,
        store_sync_range_s=store_sync_range,
        store_sync_relay_jitter_s=store_sync_relay_jitter,
    )

    listens = None
    if listen:
        try:
            from waku.node import Listen
        except ImportError as error:
            raise CannotListen(str(error)) from error
        listens = Listen(
            tuple(listen),
            announce=tuple(announce or ()),
            identity=identity or data_directory() / "node.key",
            tls_certificate=tls_certificate,
            tls_key=tls_key,
            known_peers=tuple(known_peer or ()),
            bound=tuple(BOUND),
        )

    def listening(addresses: tuple[str, ...]) -> None:
        for address in addresses:
            typer.echo(f"libp2p peers reach it at {address}")

    def started(address: str) -> None:
        told = json.dumps({"event": "listening", "address": address})
        try:
            typer.echo(told if as_json else f"listening on {address}")
        except BrokenPipeError as error:
            raise OSError(
                f"standard output is closed, and takes no address ({address}); redirect it to a "
                "file, or to /dev/null"
            ) from error
        if as_json:
            return
        err.print(f"the API is described at {address}/docs; stop with Ctrl-C", style="dim")

    named: dict[ServiceKind, str | None] = {
        "lightpush": lightpush_node,
        "filter": filter_node,
        "store": store_node,
    }

    async def main() -> None:
        await serve(
            options,
            host=host,
            port=port,
            join=tuple(join or ()),
            service_nodes={kind: address for kind, address in named.items() if address},
            listen=listens,
            relay_peers=tuple(relay_peer or ()),
            started=started,
            listening=listening,
            bound=BOUND,
        )

    anyio.run(main)
