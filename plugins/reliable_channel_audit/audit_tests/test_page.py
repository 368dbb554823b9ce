"""The page of a report, from plain values."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from reliable_channel.runtime.journal import JOURNAL_FORMAT
from reliable_channel_audit.check import check
from reliable_channel_audit.evidence import Evidence, evidence
from reliable_channel_audit.findings import Audit, Coverage
from reliable_channel_audit.journals import group_of, journal_files, options_of
from reliable_channel_audit.page import (
    about_journals,
    delivery_sections,
    page,
    section,
)
from reliable_channel_audit.rates import listed, percent
from reliable_channel_audit.verdict import Rate, Verdict

from .generated import SMALL_BLOOM, write_group
from .planted import plant

CASES = [
    Coverage("general", "p000", 0, "delivery", 30, None),
    Coverage("general", "p001", 0, "delivery", 30, "a line cannot be read"),
]


class Tags(HTMLParser):
    """Checks that what is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "line", "rect", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in ("line", "rect", "path") or self.open.pop() == tag


def shown(
    found: Verdict, proofs: list[Evidence], *sections: str, cases: list[Coverage] = CASES
) -> str:
    about = about_journals(found, [], [JOURNAL_FORMAT], {"seed": "7"}, 10_000)
    text = page(found, about, cases, [], proofs, sections)
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    return text


def test_each_finding_leads_to_its_evidence(tmp_path: Path) -> None:
    paths = write_group(tmp_path)
    plant("clock jump", paths[0], seed=1)
    ((_, _, message_id),) = plant("missing", paths[1], seed=1)
    found = check([tmp_path])
    group = group_of(journal_files([tmp_path])).participants
    text = shown(found, evidence(group, found, [tmp_path]))
    assert '<h1 class="broken">' in text
    assert f'title="{message_id}"' in text
    links = re.findall(r'href="#([\w-]+)"', text)
    assert links == ["evidence-1", "evidence-2"]
    assert all(f'<details id="{link}"' in text for link in links)
    assert f"reliable-channel check {tmp_path} --message {message_id}" in text
    assert "<script" not in text


def test_without_findings_there_is_no_place_for_them(tmp_path: Path) -> None:
    write_group(tmp_path)
    text = shown(check([tmp_path]), [])
    assert '<h1 class="kept">' in text
    assert all(each.promise.replace("'", "&#x27;") in text for each in Audit)
    assert "<h2>Findings</h2>" not in text
    assert "<h2>Evidence</h2>" not in text
    assert "Options other than the defaults: seed 7." in text
    assert '<td class="unknown" title="a line cannot be read">?</td>' in text


def test_names_cannot_write_html() -> None:
    loss = Rate("<b>", None, "<script>", "<u>", 0, 1, 0.0, *[None] * 4)
    table = section("<b>", "<i>", ["<u>"], [("<script>",)])
    text = shown(Verdict(), [], table, *delivery_sections(Verdict(rates=[loss])))
    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 2


def test_what_says_nothing_has_no_column() -> None:
    rows = [("general", "alice", 3, None, ""), ("general", "bob", 4, None, "")]
    text = section("Clocks", "How far.", ["channel_id", "whose", "ms", "none", "why"], rows)
    assert re.findall(r"<th[^>]*>(.*?)</th>", text) == ["whose", "ms"]
    assert section("Clocks", "How far.", ["whose"], []) == '<p class="about">Clocks: none.</p>'


def test_participants_with_findings_are_shown_first(tmp_path: Path) -> None:
    path = write_group(tmp_path)[3]
    plant("missing", path, seed=1)
    found = check([tmp_path])
    many = [f"a{number:03}" for number in range(100)]
    cases = [CASES[0]._replace(participant_id=name) for name in (*many, path.stem)]
    text = shown(found, [], cases=cases)
    names = re.findall(r"<tr><td>(\w+)</td><td class=\"", text)
    assert len(names) == 40
    assert path.stem in names
    assert set(found.broken) == {Audit.DELIVERY.value}


def test_options_that_are_not_the_default(tmp_path: Path) -> None:
    write_group(tmp_path)
    group = group_of(journal_files([tmp_path])).participants
    assert options_of(group) == ([JOURNAL_FORMAT], {"bloom_capacity": str(SMALL_BLOOM.capacity)})


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
