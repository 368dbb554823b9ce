"""The sync protocol `sds` of a channel: the built-in core, with the channel's options."""

from dataclasses import replace

from .sds.protocol import SdsProtocol
from .sync_core import SyncSetting


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
