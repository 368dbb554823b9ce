"""`reliable-channel node`: the embedded Waku node as a server."""

from pathlib import Path
from typing import Annotated

import anyio
import typer

from waku.node.options import Behaviour

from .console import err


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(node)


def node(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the REST API; 0 takes a free one.")
    ] = 8645,
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
    cluster_id: Annotated[int, typer.Option(help="The network's cluster.")] = 1,
    num_shards: Annotated[int, typer.Option(min=1, help="The cluster's shards.")] = 8,
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
            envvar="RELIABLE_CHANNEL_NODE_TOKEN",
            help="Answer only who sends it: clients write http://:TOKEN@host:port.",
        ),
    ] = None,
    admin: Annotated[
        bool, typer.Option(help="Serve /admin/v1, through which clients join other nodes.")
    ] = True,
) -> None:
    """Run a Waku node for development and tests: the REST API of nwaku, a message store, no
    network."""
    from waku.node import NodeOptions, ServiceKind, serve

    options = NodeOptions(
        cluster_id=cluster_id,
        num_shards=num_shards,
        cache_capacity=cache_capacity,
        store_path=store or ":memory:",
        behave_as=behave_as,
        allow_hosts=tuple(allow_host or ()),
        allow_origins=tuple(allow_origin or ()),
        token=token,
        admin=admin,
    )

    def started(address: str) -> None:
        typer.echo(f"listening on {address}")
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
            started=started,
        )

    anyio.run(main)
