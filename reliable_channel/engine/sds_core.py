"""Sync protocol `sds` of a channel, which is the built-in core."""

from dataclasses import replace

from ..sds.protocol import SdsProtocol
from .sync_core import CoreContext


def sds_core(context: CoreContext) -> SdsProtocol:
    """Return an SDS core with the options of a channel."""
    options = context.options.sds_options()
    return SdsProtocol(
        context.channel_id,
        context.sender_id,
        now_ms=context.now_ms,
        random=context.random,
        options=replace(
            options,
            retry_policy=context.policies.retry,
            repair=replace(
                options.repair,
                repair_on_demand=context.repair_on_demand,
                cache_durably=options.repair.cache_durably or not context.has_store,
            ),
        ),
        profile=context.options.profile,
        id_function=context.policies.id_function,
        signing=context.signing,
        require_signatures=context.require_signatures,
        recorder=context.recorder,
        archive=context.archive,
        assembles_late=True,
    )
