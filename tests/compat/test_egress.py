"""How long TCP takes to carry a message out of a container, in virtual time."""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from interop.compat.egress import Egress, GaveUp

pytestmark = pytest.mark.anyio

LONG: Final = 100_000
"""Bytes of 70 packets."""


def egress(rule: str = "", *, seed: int = 7) -> Egress:
    made = Egress(lambda: seed)
    if rule:
        made.tc(["qdisc", "add", "dev", "eth0", "root", *rule.split()])
    return made


def clear(shaped: Egress) -> None:
    shaped.tc(["qdisc", "del", "dev", "eth0", "root"])


async def seconds(shaped: Egress, size_bytes: int | None) -> float:
    """How long a message takes, or a handshake where there is no size."""
    began = anyio.current_time()
    await (shaped.open_connection() if size_bytes is None else shaped.message(size_bytes))
    return anyio.current_time() - began


async def test_without_a_rule_nothing_waits() -> None:
    assert await seconds(egress(), None) == await seconds(egress(), LONG) == 0


@pytest.mark.parametrize("size_bytes", [None, 1, 1448, 1449, LONG])
async def test_a_delay_is_waited_for_once_however_long_the_message(size_bytes: int | None) -> None:
    assert await seconds(egress("netem delay 5s"), size_bytes) == pytest.approx(5)


async def test_a_message_of_no_bytes_has_no_packet() -> None:
    assert await seconds(egress("netem delay 5s"), 0) == 0


async def test_packets_that_overtake_others_do_not_make_a_message_earlier() -> None:
    assert await seconds(egress("netem delay 5s reorder 50%"), LONG) == pytest.approx(5)


async def test_duplicates_do_not_make_a_message_later() -> None:
    assert await seconds(egress("netem delay 5s duplicate 100%"), LONG) == pytest.approx(5)


async def test_a_lost_packet_makes_the_message_wait() -> None:
    shaped = egress("netem loss 30%")
    waited_s = await seconds(shaped, LONG)
    assert shaped.rule is not None and shaped.rule.dropped_packets > 0
    assert shaped.rule.sent_packets == 70
    # Each round that passes some packets starts the wait anew.
    assert waited_s >= 0.2 and waited_s == pytest.approx(0.2 * round(waited_s / 0.2))


async def test_the_same_seed_takes_the_same_time() -> None:
    one, same = [await seconds(egress("netem delay 1s 500ms loss 30%"), LONG) for _ in range(2)]
    assert one == pytest.approx(same)
    assert await seconds(egress("netem delay 1s 500ms loss 30%", seed=8), LONG) != one


@pytest.mark.parametrize(
    ("size_bytes", "again_s"),
    # 0.2 s for the probe, then 0.2 + 0.4 + … + 3.2 s; a handshake 1 + 2 + 4 s.
    [(100, 6.4), (None, 7.0)],
)
async def test_after_a_blackout_it_goes_on_at_the_next_retransmission(
    size_bytes: int | None, again_s: float
) -> None:
    shaped = egress("netem loss 100%")
    passed_s: list[float] = []

    async def send() -> None:
        passed_s.append(await seconds(shaped, size_bytes))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await anyio.sleep(5)
        assert not passed_s
        clear(shaped)
    assert passed_s == [pytest.approx(again_s)]


async def test_a_connection_on_which_nothing_passes_is_given_up() -> None:
    began = anyio.current_time()
    with pytest.raises(GaveUp, match="1 packets were sent 17 times, and none passed"):
        await egress("netem loss 100%").message(100)
    assert anyio.current_time() - began == pytest.approx(0.2 + 804.6)
    with pytest.raises(GaveUp, match="1 packets were sent 7 times, and none passed"):
        await egress("netem loss 100%").open_connection()


async def test_a_handshake_is_answered_for_each_syn_that_is_sent_again() -> None:
    shaped = egress("netem loss 100%")
    with pytest.raises(GaveUp):
        await shaped.accept_connection()
    assert shaped.rule is not None
    assert shaped.rule.dropped_packets == 1 + 2 * 6


async def test_a_rate_is_kept_to() -> None:
    # 70 frames of 1514 bytes and less, at 8,000 bytes a second.
    assert await seconds(egress("netem rate 64kbit"), LONG) == pytest.approx(
        (LONG + 70 * 66) / 8000
    )


async def test_a_queue_that_is_full_makes_a_long_message_wait() -> None:
    shaped = egress("tbf rate 256kbit burst 32kbit limit 12500")
    waited_s = await seconds(shaped, LONG)
    assert shaped.rule is not None and shaped.rule.dropped_packets > 0
    assert (LONG - 4096) / 32_000 <= waited_s <= 3 * LONG / 32_000


async def test_a_rule_that_is_replaced_holds_for_what_is_sent_again() -> None:
    shaped = egress("netem loss 100%")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shaped.message, 100)
        await anyio.sleep(0.1)
        shaped.tc("qdisc replace dev eth0 root netem delay 9s".split())
        began = anyio.current_time()
    assert anyio.current_time() - began == pytest.approx(9.1)
