"""The SDK's own transports, state stores, profiles and policies, registered as plugins register."""

from dataclasses import replace

from .hooks import Register, hookimpl
from .policies import ID_FUNCTIONS, REPAIR_POLICIES, RETRY_POLICIES
from .sds import SdsProtocol
from .sds.profile import PROFILES
from .sync_core import SyncSetting
from .transport.connect import WAKU_SCHEMES


class BuiltIn:
    """The plugin `built in`."""

    @hookimpl
    def register_transports(self, register: Register) -> None:
        """A Waku node's REST API, a network in memory, and a multicast group."""
        for scheme in WAKU_SCHEMES:
            register(scheme, "reliable_channel.transport.connect:waku_transport")
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
        register("sds", sds_core)

    @hookimpl
    def register_wire_profiles(self, register: Register) -> None:
        """The SDS specification, and nim-sds."""
        for name, profile in PROFILES.items():
            register(name, profile)

    @hookimpl
    def register_repair_policies(self, register: Register) -> None:
        """The policies of `retrieval_strategy`."""
        for name, policy in REPAIR_POLICIES.items():
            register(name, policy)

    @hookimpl
    def register_retry_policies(self, register: Register) -> None:
        """The policies of `retry_policy`."""
        for name, policy in RETRY_POLICIES.items():
            register(name, policy)

    @hookimpl
    def register_id_functions(self, register: Register) -> None:
        """The functions of `id_function`."""
        for name, function in ID_FUNCTIONS.items():
            register(name, function)


def sds_core(setting: SyncSetting) -> SdsProtocol:
    """Return a core of SDS for a channel."""
    options = setting.options.sds_options()
    return SdsProtocol(
        setting.channel_id,
        setting.sender_id,
        now_ms=setting.now_ms,
        random=setting.random,
        options=replace(
            options,
            retry_policy=setting.policies.retry,
            repair=replace(
                options.repair,
                asks_when_told=setting.asks_when_told,
                cache_durably=options.repair.cache_durably or not setting.has_store,
            ),
        ),
        profile=setting.options.profile,
        id_function=setting.policies.id_function,
        signing=setting.signing,
        require_signatures=setting.require_signatures,
        recorder=setting.recorder,
        archive=setting.archive,
    )
