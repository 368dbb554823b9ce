"""Report as one HTML page without other files, made from plain values."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Any, Final

from .evidence import Evidence, show
from .findings import SEVERITIES, Audit, Coverage, Finding, severity
from .lines import time_text
from .rates import duration, latency, percent
from .replay import Life
from .timeline import TimeBucket, draw_timeline
from .verdict import NO_CASE, Behind, Rate, Value, Verdict

MAX_ROWS: Final = 200
"""Maximum number of rows in a table of the page. The report's Parquet files contain all rows."""
MAX_IN_MATRIX: Final = 40
"""Maximum number of participants in the table of promises, those with findings first."""
MAX_STEPS_SHOWN: Final = 40
MAX_HOURS: Final = 48
MAX_PAIRS: Final = 40
"""Maximum number of rows in a table of delivery rates, the worst first."""
MAX_IN_GRID: Final = 10
"""Maximum number of participants in a grid of senders and receivers. For larger groups, the report
lists the worst pairs instead."""
_ABOUT: Final = (
    "Delivery to others than the sender, and the latency from the sender's log to theirs that so "
    "many percent of the deliveries do not exceed. Without the sender's journal, the latency "
    "starts at the first delivery."
)
_RATE: Final = (*Rate._fields[:7], "p50", "p90", "p99", "max")
TIMES: Final = {
    "at_ms": "since",
    "hour_ms": "hour",
    "opened_ms": "joined",
    "owed_from_ms": "wants from",
    "since_ms": "since",
}
"""Columns that contain times, which the page shows in UTC."""
HEADLINES: Final = {
    Value.KEPT: "Every promise that was put to the test was kept",
    Value.BROKEN: "Broken promises",
    Value.UNKNOWN: "It is not known whether all promises were kept",
}
_LONG_ID: Final = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{54}\b")
_FIGURE: Final = re.compile(r"-?[\d.,]+(?: [a-z%]+)?|")
_MARKS: Final = {Value.KEPT: "✓", Value.BROKEN: "✗", Value.UNKNOWN: "?"}
_FINDING: Final = ("promise", "participant", "message", "at_ms", "what", "evidence")


def page(
    found: Verdict,
    about: Iterable[str],
    coverage: Iterable[Coverage],
    buckets: Sequence[TimeBucket],
    evidence: Sequence[Evidence],
    sections: Iterable[str],
    *,
    leading: Iterable[str] = (),
) -> str:
    """Return the whole page, with deliveries before promises. `about_journals` makes `about`,
    and `section` makes `sections`."""
    behind = "Messages that were accepted while the participant was there, and are not in its log."
    latencies = "From the sender to the logs of others, by when it was accepted."
    unread = "What could not be read. All else was judged."
    columns = "file", "why", "lines", "first line"
    drawn = draw_timeline(buckets)
    body = [
        f'<h1 class="{found.value.value}">{HEADLINES[found.value]}</h1>',
        *about,
        section("Behind now", behind, Behind._fields, found.behind),
        section("Latency over time", latencies, drawn=drawn) if drawn else "",
        *leading,
        *_promises(found),
        *_matrix(found, coverage),
        *_findings(found, evidence),
        *sections,
        section("Set aside", unread, columns, found.set_aside) if found.set_aside else "",
        *_evidence(evidence),
    ]
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    return template.substitute(body="\n".join(filter(None, body)))


def section(
    title: str,
    about: str,
    columns: Sequence[str] = (),
    rows: Sequence[Sequence[Any]] = (),
    drawn: str = "",
) -> str:
    """Return a section with title, explanation, and a drawing or a table of `MAX_ROWS` rows."""
    if not rows and not drawn:
        return f'<p class="about">{escape(title)}: none.</p>'
    filled = _table(columns, rows[:MAX_ROWS]) if rows else ""
    picture = f'<div class="picture">{drawn}</div>' if drawn else ""
    return _heading(title, about) + picture + filled


def _grid(
    corner: str, heads: Iterable[str], rows: Mapping[str, Iterable[str]], kind: str = ""
) -> str:
    """A table with a participant in each row. `heads` and the cells of `rows` are HTML."""
    body = (
        f"<tr><td>{escape(name[:40])}</td>{''.join(cells)}</tr>\n" for name, cells in rows.items()
    )
    head = f"<tr><th>{corner}</th>{''.join(heads)}</tr>\n"
    return f'<table class="matrix{kind}">{head}{"".join(body)}</table>'


def _heading(title: str, about: str) -> str:
    return f'<h2>{escape(title)}</h2><p class="about">{escape(about)}</p>'


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns without a value are left out, and the channel where there is but one."""
    head, cells = "", []
    for name, values in zip(columns, zip(*rows, strict=True), strict=True):
        if len({*values} - ({None, ""} if name != "channel_id" else {values[0]})):
            is_number = all(value is None or _FIGURE.fullmatch(str(value)) for value in values)
            kind = " class=time" if name in TIMES else " class=number" * is_number
            head += f"<th{kind}>{escape(title_of(name))}</th>"
            cells.append([f"<td{kind}>{_text(name, value)}</td>" for value in values])
    body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in zip(*cells, strict=True))
    return f'<div class="wide"><table class="figures"><tr>{head}</tr>\n{body}</table></div>'


def title_of(column: str) -> str:
    """Return the heading of a column on the page."""
    return TIMES.get(column, column).removesuffix("_id").replace("_", " ")


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in TIMES:
        return time_text(value, "%Y-%m-%d %H:%M") if name == "hour_ms" else time_text(value)
    if name == "evidence":
        return f'<a href="#evidence-{value}">evidence {value}</a>'
    if isinstance(value, str | bool):
        return _short(str(value))
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def _short(text: str) -> str:
    """Text with ids cut short, each with the whole one as its title."""
    return _LONG_ID.sub(r'<span title="\g<0>">\1…</span>', escape(text))


def about_journals(
    found: Verdict,
    lives: Sequence[Life],
    formats: Iterable[str],
    options: Mapping[str, str],
    settle_ms: int | None = None,
) -> Iterator[str]:
    """Yield the most important facts about journals of some formats. The `options` of their
    channels differ from the defaults."""
    ahead_ms = found.ahead_ms
    begin_ms = min((each.opened_ms - ahead_ms.get(each[:2], 0) for each in lives), default=0)
    end_ms = max((each.until_ms - ahead_ms.get(each[:2], 0) for each in lives), default=0)
    channels = sorted({each.channel_id for each in lives})
    logs = "one log" if found.logs == 1 else f"{found.logs} different logs"
    seconds = (end_ms - begin_ms) / 1000
    delivered, owed = found.delivered
    rate = f" ({percent(delivered / owed)})" if owed else ""
    names = ", ".join(channels[:5]) + ", …" * (len(channels) > 5)
    facts = {
        "delivered": f"{delivered:,} of {owed:,}{rate}",
        "latency": latency(found.rates[0]) if len(channels) == 1 and found.rates else "",
        "lost": f"{owed - delivered:,}",
        "behind now": f"{len({each[:2] for each in found.behind}):,} of {found.participants:,}",
        "on their way at the end": f"{found.on_the_way:,}",
        "not monitored": ", ".join(name for _, name in found.without_journal[:5]),
        "channel" if len(channels) == 1 else "channels": names,
        "participants": f"{found.participants:,}, {logs}",
        "messages": f"{found.messages:,}",
        "from": time_text(begin_ms, "%Y-%m-%d %H:%M:%S"),
        "to": time_text(end_ms, "%Y-%m-%d %H:%M:%S"),
        "duration": f"{seconds:,.0f} s" if seconds < 7_200 else f"{seconds / 3_600:,.1f} h",
    }
    cells = (
        f"<div><b>{name}</b>{escape(value).replace(' %', '&nbsp;%')}</div>"
        for name, value in facts.items()
        if value
    )
    yield f'<div class="facts">{"".join(cells)}</div>'
    longest_ms = max((each.settle_ms for each in lives), default=0)
    due_s = (longest_ms if settle_ms is None else settle_ms) / 1000
    others = "; ".join(f"{name} {value}" for name, value in options.items()) or "none"
    text = (
        f"Judged by reliable-channel {version('reliable-channel')} from journals of "
        f"{', '.join(formats)}. A message is due after {due_s:g} s. Options other than the "
        f"defaults: {others}."
    )
    yield f'<p class="about">{escape(text)}</p>'


def _promises(found: Verdict) -> Iterator[str]:
    yield "<h2>Promises</h2><table>"
    for audit in Audit:
        value = found.of(audit)
        broken, cases = found.broken.get(audit.value, 0), found.judged.get(audit.value, 0)
        among = f"{broken:,} of {cases:,}" if broken <= cases else f"{broken:,} findings"
        count = {
            Value.KEPT: f"kept ({cases:,} cases)",
            Value.BROKEN: f"broken: {among}",
            Value.UNKNOWN: f"unknown: {escape(found.unknown.get(audit.value, NO_CASE))}",
        }[value]
        mark = _MARKS[value]
        yield (
            f'<tr><td class="{value.value}">{mark}</td><td>{escape(audit.promise)}</td>'
            f'<td class="{value.value}">{count}</td></tr>'
        )
    yield "</table>"


def _matrix(found: Verdict, coverage: Iterable[Coverage]) -> Iterator[str]:
    cases: defaultdict[str, dict[str, tuple[int, str | None]]] = defaultdict(dict)
    for each in coverage:
        count, why = cases[each.participant_id].get(each.audit, (0, None))
        least = min(filter(None, (why, each.why)), default=None)
        cases[each.participant_id][each.audit] = count + each.cases, least
    of_each = Counter(each.participant_id for each in found.findings)
    worst = sorted({*cases, *of_each}, key=lambda name: (-of_each[name], name))[:MAX_IN_MATRIX]
    names = sorted(cases.keys() & worst)
    if not names:
        return
    counts = Counter((each.participant_id, each.audit) for each in found.findings)
    about = "Findings of each participant; ✓ where it was judged without one, ? where some was not."
    if len(names) < found.participants:
        about += f" {len(names)} of {found.participants:,} participants, those with findings first."
    yield _heading("Participants and promises", about)
    heads = (
        f'<th title="{escape(audit.promise)}">{audit.value.replace("_", " ")}</th>'
        for audit in Audit
    )
    rows = {
        name: [
            _mark(counts[name, audit.value], *cases[name].get(audit.value, (0, None)))
            for audit in Audit
        ]
        for name in names
    }
    yield _grid("participant", heads, rows)


def _mark(findings: int, cases: int, why: str | None) -> str:
    if findings:
        return f'<td class="broken">{findings:,}</td>'
    if why is not None:
        return f'<td class="unknown" title="{escape(why)}">?</td>'
    return f'<td class="kept" title="{cases:,} cases">✓</td>' if cases else "<td>&ndash;</td>"


def _findings(found: Verdict, evidence: Sequence[Evidence]) -> Iterator[str]:
    """By severity, the worst first; with links to what shows them."""
    if not found.findings:
        return
    links: dict[Finding | str, int] = {}
    for number, each in enumerate(evidence, 1):
        links |= {each.finding: number, each.finding.message_id or each.finding: number}
    total = sum(found.broken.values())
    about = f"{total:,} in all, the worst first, with times by the clocks of the journals."
    yield _heading("Findings", about)
    for rank, title in enumerate(SEVERITIES):
        findings = [each for each in found.findings if severity(each) == rank]
        findings.sort(key=lambda each: (each not in links, each))
        rows = [
            (
                each.audit.replace("_", " "),
                *(each.participant_id, each.message_id, each.at_ms, each.detail),
                links.get(each, links.get(each.message_id)),
            )
            for each in findings[:MAX_ROWS]
        ]
        if rows:
            yield f"<h3>{escape(title.capitalize())}: {len(findings):,}</h3>"
            yield _table(_FINDING, rows)


def _evidence(evidence: Sequence[Evidence]) -> Iterator[str]:
    if evidence:
        about = f"Of the worst findings, of each message one: {len(evidence)}."
        yield _heading("Evidence", about)
    for number, each in enumerate(evidence, 1):
        finding = each.finding
        title = f"{number}. {finding.audit.replace('_', ' ')} at {finding.participant_id}: "
        steps = [show(step) for step in each.life[:MAX_STEPS_SHOWN]]
        if len(each.life) > MAX_STEPS_SHOWN:
            steps.append(f"… {len(each.life) - MAX_STEPS_SHOWN} more in report.json")
        steps += each.clocks
        yield f'<details id="evidence-{number}" open><summary>{escape(title)}'
        yield f"{_short(finding.detail)}</summary>"
        yield f"<p>{escape(each.path)}:{each.line}</p>" if each.path else ""
        yield f"<pre>{_short(chr(10).join(steps))}</pre>" if steps else ""
        for where, lines in each.around.items():
            yield f'<p class="about">Around {escape(where)}</p>'
            yield f"<pre>{_short(chr(10).join(lines))}</pre>"
        yield f"<pre>{escape(each.command)}</pre></details>"


def delivery_sections(found: Verdict) -> Iterator[str]:
    """Yield the sections about delivery rates and latencies, by channel if there are several."""
    channels = [each for each in found.rates if each.hour_ms is None and each.sender_id is None]
    hours = [each for each in found.rates if each.hour_ms is not None]
    pairs = [each for each in found.rates if each.sender_id is not None]
    if len(channels) > 1:
        yield _delivery("Delivery by channel", "channel", "", channels, channels)
    by_rate = sorted(hours, key=lambda each: (*each.badness, -(each.hour_ms or 0)))
    about = "By the hour in which messages were accepted (UTC). "
    worst = sorted(by_rate[:MAX_HOURS])
    yield _delivery("Delivery by hour", "hour", about, worst, hours)
    title = "Delivery by sender and receiver"
    names = sorted({name for each in pairs for name in (each.sender_id, each.receiver_id) if name})
    if pairs and len(channels) == 1 and len(names) <= MAX_IN_GRID:
        about = (
            "A row a sender, a column a receiver: delivery rate, and the latency of half and of "
            "99 % of the deliveries."
        )
        of = {(each.sender_id, each.receiver_id): each for each in pairs}
        heads = (f"<th>{escape(name[:40])}</th>" for name in names)
        rows = {name: [_square(of.get((name, other))) for other in names] for name in names}
        yield section(title, about, drawn=_grid("from", heads, rows, " grid"))
    else:
        yield _delivery(title, "pair", "The worst first. ", pairs[:MAX_PAIRS], pairs)


def _delivery(
    title: str, kind: str, about: str, shown: Sequence[Rate], every: Sequence[Rate]
) -> str:
    """The rates that are shown, as a table."""
    about += _ABOUT
    if len(shown) < len(every):
        about += f" {len(shown)} of {len(every):,} {kind}s, the worst; "
        about += f"delivery_by_{kind}.parquet has all."
    rows = [(*each[:6], percent(each.rate), *map(duration, each[7:])) for each in shown]
    return section(title, about, _RATE, rows)


def _square(rate: Rate | None) -> str:
    if rate is None:
        return "<td>&ndash;</td>"
    value = "broken" if rate.lost else "kept"
    times = f"{duration(rate.p50_ms)}<br>{duration(rate.p99_ms)}"
    counts = f"{rate.delivered:,} of {rate.delivered + rate.lost:,}"
    return f'<td class="{value}" title="{counts}">{percent(rate.rate)}<small>{times}</small></td>'
