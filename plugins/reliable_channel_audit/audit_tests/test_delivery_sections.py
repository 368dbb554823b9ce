"""Delivery rates on the page."""

from __future__ import annotations

import re
from pathlib import Path

from reliable_channel_audit.check import check
from reliable_channel_audit.delivery_sections import delivery_sections
from reliable_channel_audit.rates import listed, percent
from reliable_channel_audit.verdict import Rate, Verdict

from .generated import write_group
from .planted import plant


def test_a_loss_shows_between_its_sender_and_its_receiver(tmp_path: Path) -> None:
    path = write_group(tmp_path)[3]
    plant("missing", path, seed=1)
    found = check([tmp_path])
    *_, pairs = delivery_sections(found)
    (lost,) = re.findall(r'<td class="broken" title="([^"]*)">([\d.]+ %)', pairs)
    (worst,) = [each for each in found.rates if each.receiver_id == path.stem and each.lost]
    assert lost == (f"{worst.delivered} of {worst.delivered + 1}", percent(worst.rate))
    assert pairs.count('<td class="kept"') == 11


def test_of_many_pairs_the_worst_are_listed_first() -> None:
    names = [f"p{number:02}" for number in range(12)]
    pairs = [
        Rate("general", None, sender, receiver, 99, sender == "p07", 0.99, 1, 2, 3, 4)
        for sender in names
        for receiver in names
        if sender != receiver
    ]
    *_, text = delivery_sections(Verdict(rates=listed(pairs)))
    assert "40 of 132 pairs, the worst" in text


def test_several_channels_have_a_section_and_a_column() -> None:
    rates = [Rate(name, None, None, None, 9, 0, 1.0, 1, 2, 3, 4) for name in ("one", "two")]
    hours = [rate._replace(hour_ms=3_600_000 * hour) for rate in rates for hour in range(50)]
    by_channel, by_hour, by_pair = delivery_sections(Verdict(rates=rates + hours))
    assert re.findall(r"<th[^>]*>(.*?)</th>", by_channel)[:2] == ["channel", "delivered"]
    assert by_hour.count("<td>one</td>") + by_hour.count("<td>two</td>") == 48
    assert "48 of 100 hours, the worst" in by_hour
    assert by_pair == '<p class="about">Delivery by sender and receiver: none.</p>'
