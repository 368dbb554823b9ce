"""The SDK's own transports, stores, profiles and policies, imported when a channel needs it."""

from .hooks import Register, hookimpl


class BuiltIn:
    """The plugin with the name `built in`."""

    @hookimpl
    def register_transports(self, register: Register) -> None:
        """Register the transports: a Waku node (REST, messaging layer), service peers, a network in
        memory, multicast."""
        for scheme in ("http", "https", "waku+http", "waku+https"):
            register(scheme, "reliable_channel.transport.connect:waku_transport")
        for scheme in ("waku+messaging", "waku+messaging+https"):
            register(scheme, "reliable_channel.transport.connect:messaging_transport")
        register("libp2p", "reliable_channel.transport.connect:light_transport")
        register("memory", "reliable_channel.transport.memory:named_transport")
        register("udp+multicast", "reliable_channel.transport.multicast:MulticastTransport")

    @hookimpl
    def register_state_stores(self, register: Register) -> None:
        """State in memory, and in SQLite files."""
        register("memory", "reliable_channel.state.connect:memory_store")
        register("sqlite", "reliable_channel.state.connect:sqlite_store")

    @hookimpl
    def register_sync_cores(self, register: Register) -> None:
        """Scalable Data Sync, the default."""
        register("sds", "reliable_channel.engine.sds_core:sds_core")

    @hookimpl
    def register_wire_profiles(self, register: Register) -> None:
        """Register the dialects: the SDS specification, and nim-sds."""
        register("spec", "reliable_channel.sds.profile:SPEC")
        register("nim", "reliable_channel.sds.profile:NIM")

    @hookimpl
    def register_repair_policies(self, register: Register) -> None:
        """Register the policies of `retrieval_strategy`."""
        for name in ("both", "store-only", "sds-r-only", "adaptive", "prompt"):
            register(name, f"reliable_channel._contracts.repair_policies:{name.replace('-', '_')}")
        register("none", "reliable_channel._contracts.repair_policies:nothing")

    @hookimpl
    def register_retry_policies(self, register: Register) -> None:
        """Register the policies of `retry_policy`."""
        for name in ("fixed", "doubling"):
            register(name, f"reliable_channel.sds.outgoing:{name}")

    @hookimpl
    def register_id_functions(self, register: Register) -> None:
        """Register the functions of `id_function`."""
        register("lip-173", "reliable_channel.sds.ids:reliable_channel_id")
        register("js-waku", "reliable_channel.sds.ids:js_waku_id")
