"""Report as one HTML page without other files, made from plain values."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from .evidence import Evidence, show
from .findings import PROMISES, Audit, Finding, severity
from .lines import time_text
from .rates import latency, percent
from .timeline import LEGEND, TimeBucket, draw_timeline
from .verdict import NO_CASE, Behind, Value, Verdict

MAX_ROWS: Final = 200
"""Maximum number of rows in a table of the page. The Parquet files of the report contain all
rows."""
MAX_IN_MATRIX: Final = 40
"""Maximum number of participants in the table of promises, those with findings first."""
MAX_STEPS_SHOWN: Final = 40
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
SEVERITIES: Final = (
    "acknowledged, and no other participant has it",
    "an application missed something, or received what it should not",
    "a log or an acknowledgement is wrong",
    "logs, references or journals differ",
    "what may lead to worse",
)
_LONG_ID: Final = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{54}\b")
_FIGURE: Final = re.compile(r"-?[\d.,]+(?: [a-z%]+)?|")
_MARKS: Final = {Value.KEPT: "✓", Value.BROKEN: "✗", Value.UNKNOWN: "?"}
PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; }}
h1 {{ font-size: 1.6rem; line-height: 1.2 }} h2 {{ font-size: 1.15rem; margin: 2.4rem 0 .4rem }}
h3 {{ font-size: 1rem; margin: 1.4rem 0 .3rem }}
table {{ border-collapse: collapse; font-size: 13px; width: 100% }}
th, td {{ text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid #e4e4e4;
  vertical-align: top; overflow-wrap: anywhere }}
th {{ overflow-wrap: normal; hyphens: auto }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal }}
.kept {{ color: #00694b }} .broken {{ color: #b3001b; font-weight: 600 }} .about {{ color: #555 }}
.unknown {{ color: #8a5a00 }}
td:last-child.number, th:last-child.number {{ padding-right: 0 }}
th.number {{ text-align: right }}
.facts {{ display: grid; gap: .6rem 1.2rem;
  grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)) }}
.facts div {{ border-left: 3px solid #d0d0d0; padding-left: .6rem; overflow-wrap: anywhere }}
.facts div:first-child {{ border-color: currentColor; font-weight: 600 }}
.facts b {{ display: block; font-weight: 500; color: #555; font-size: 12px }}
.matrix td, .matrix th {{ text-align: center; padding: .25rem .1rem }}
.matrix th {{ font-weight: 400; font-size: 11px }}
.matrix td:first-child, .matrix th:first-child {{ text-align: left; white-space: nowrap }}
.grid {{ table-layout: fixed }} .grid td, .grid th {{ padding: .25rem .15rem }}
.grid th {{ font-size: 12px }}
td.number + td:not(.number), th.number + th:not(.number) {{ padding-left: 1.2rem }}
.grid small {{ display: block; color: #555; font-weight: 400; line-height: 1.3 }}
.wide {{ overflow-x: auto }} .figures td {{ overflow-wrap: normal }}
.figures th, .figures td.number, .figures td.time {{ white-space: nowrap }}
.matrix td.broken {{ background: #fbe3e5 }} .matrix td.unknown {{ background: #fdf3dc }}
.legend {{ font-size: 12px; color: #444; margin: .2rem 0 }}
.legend span {{ display: inline-block; width: 1.6rem; margin: 0 .4rem 0 .8rem;
  vertical-align: middle }}
.legend span.area {{ height: .8rem }}
details {{ border: 1px solid #e4e4e4; border-radius: 4px; padding: .4rem .7rem; margin: .5rem 0 }}
details:target {{ border-color: #b3001b }}
pre {{ font-size: 12px; white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0;
  background: #f6f6f6; padding: .4rem }}
.picture {{ overflow-x: auto }} .picture svg {{ height: auto; width: 100%; min-width: 40rem }}
@media (max-width: 640px) {{
  table.rows, .rows tbody, .rows tr, .rows td {{ display: block; padding: 0 }}
  .rows tr.head {{ display: none }}
  .rows tr {{ border-bottom: 1px solid #c8c8c8; padding: .4rem 0 }}
  .rows td, .rows td.number {{ border: 0; text-align: left }}
  .rows td[data-label] {{ position: relative; padding-left: 9.1rem }}
  .rows td[data-label]::before {{ content: attr(data-label); color: #555; position: absolute;
    left: 0; width: 8.5rem }}
  .figures {{ font-size: 12px }} .figures td, .figures th {{ padding-right: .5rem }}
  .grid {{ font-size: 11px }}
  .matrix:not(.grid) th {{ writing-mode: vertical-rl; height: 8rem; text-align: left }}
  .matrix th:first-child {{ writing-mode: horizontal-tb; vertical-align: bottom }}
}}
</style></head><body>
{body}
</body></html>
"""


@dataclass(frozen=True, slots=True)
class Subject:
    channels: Sequence[str]
    begin_ms: int
    end_ms: int
    formats: Sequence[str] = ()
    """Versions of the journals' format."""
    options: Mapping[str, str] | None = None
    """Options of the channel that differ from the defaults, by name."""
    settle_ms: int = 0
    version: str = ""
    """Name and version of the audit program."""


CaseTable = Mapping[tuple[str, str], tuple[int, str | None]]
"""Number of cases by participant and audit, with the reason for unjudged cases."""


def page(
    found: Verdict,
    subject: Subject,
    cases: CaseTable,
    buckets: Sequence[TimeBucket],
    evidence: Sequence[Evidence],
    sections: Iterable[str],
    *,
    leading: Iterable[str] = (),
) -> str:
    """Return the whole page, with deliveries before promises. `sections` are made by the function
    `section`."""
    body = [
        f'<h1 class="{found.value.value}">{HEADLINES[found.value]}</h1>',
        *_judged(found, subject),
        *_behind(found),
        *_timeline(buckets),
        *leading,
        *_promises(found),
        *_matrix(found, cases),
        *_findings(found, evidence),
        *sections,
        *_set_aside(found),
        *_evidence(evidence),
    ]
    return PAGE.format(title="What happened in the channel", body="\n".join(body))


def section(
    title: str, about: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], drawn: str = ""
) -> str:
    """Return a section with a title, an explanation, and a table or a drawing."""
    if not rows and not drawn:
        return f'<p class="about">{escape(title)}: none.</p>'
    filled = _table(columns, rows) if rows else ""
    picture = f'<div class="picture">{drawn}</div>' if drawn else ""
    return f'<h2>{escape(title)}</h2><p class="about">{escape(about)}</p>{picture}{filled}'


def worst_participants(found: Verdict, participants: Iterable[str]) -> list[str]:
    """Return the participants in the table of promises, those with findings first."""
    counts = Counter(each.participant_id for each in found.findings)
    every = sorted({*participants, *counts}, key=lambda name: (-counts[name], name))
    return sorted(every[:MAX_IN_MATRIX])


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns without a value are left out, and the channel where there is but one."""
    every = zip(columns, zip(*rows, strict=True), strict=True)
    shown = {name: values for name, values in every if _tells(name, values)}
    kinds = [
        " class=time" if name in TIMES else " class=number" * all(map(_is_figure, values))
        for name, values in shown.items()
    ]
    cells = [
        [f"<td{kind}>{_text(name, value)}</td>" for value in values]
        for (name, values), kind in zip(shown.items(), kinds, strict=True)
    ]
    names = (title_of(name) for name in shown)
    head = "".join(
        f"<th{kind}>{escape(name)}</th>" for name, kind in zip(names, kinds, strict=True)
    )
    body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in zip(*cells, strict=True))
    return f'<div class="wide"><table class="figures"><tr>{head}</tr>\n{body}</table></div>'


def title_of(column: str) -> str:
    """Return the heading of a column on the page."""
    return TIMES.get(column, column).removesuffix("_id").replace("_", " ")


def _tells(name: str, values: Sequence[Any]) -> bool:
    if name == "channel_id":
        return len({*values}) > 1
    return any(value not in (None, "") for value in values)


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in TIMES:
        return time_text(value, "%Y-%m-%d %H:%M") if name == "hour_ms" else time_text(value)
    if isinstance(value, str | bool):
        return _short(str(value))
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def _is_figure(value: Any) -> bool:
    return value is None or bool(_FIGURE.fullmatch(str(value)))


def _short(text: str) -> str:
    """Text with ids cut short, each with the whole one as its title."""
    return _LONG_ID.sub(r'<span title="\g<0>">\1…</span>', escape(text))


def _judged(found: Verdict, subject: Subject) -> Iterator[str]:
    logs = "one log" if found.logs == 1 else f"{found.logs} different logs"
    seconds = (subject.end_ms - subject.begin_ms) / 1000
    delivered, owed = found.delivered
    rate = f" ({percent(delivered / owed)})" if owed else ""
    names = ", ".join(subject.channels[:5]) + ", …" * (len(subject.channels) > 5)
    behind = {each[:2] for each in found.behind}
    facts = {
        "delivered": f"{delivered:,} of {owed:,}{rate}",
        "latency": latency(found.rates[0]) if len(subject.channels) == 1 and found.rates else "",
        "lost": f"{owed - delivered:,}",
        "behind now": f"{len(behind):,} of {found.participants:,}",
        "on their way at the end": f"{found.on_the_way:,}",
        "not monitored": ", ".join(name for _, name in found.without_journal[:5]),
        "channel" if len(subject.channels) == 1 else "channels": names,
        "participants": f"{found.participants:,}, {logs}",
        "messages": f"{found.messages:,}",
        "from": time_text(subject.begin_ms, "%Y-%m-%d %H:%M:%S"),
        "to": time_text(subject.end_ms, "%Y-%m-%d %H:%M:%S"),
        "duration": f"{seconds:,.0f} s" if seconds < 7_200 else f"{seconds / 3_600:,.1f} h",
    }
    cells = (
        f"<div><b>{name}</b>{escape(value).replace(' %', '&nbsp;%')}</div>"
        for name, value in facts.items()
        if value
    )
    yield f'<div class="facts">{"".join(cells)}</div>'
    others = "; ".join(f"{name} {value}" for name, value in (subject.options or {}).items())
    about = (
        f"Judged by {subject.version} from journals of {', '.join(subject.formats)}. A message is "
        f"due after {subject.settle_ms / 1000:g} s. Options other than the defaults: "
    )
    yield f'<p class="about">{escape(about + (others or "none"))}.</p>'


def _behind(found: Verdict) -> Iterator[str]:
    """Participants that lack messages now."""
    about = "Messages that were accepted while the participant was there, and are not in its log."
    rows = [tuple(each) for each in found.behind]
    yield section("Behind now", about, Behind._fields, rows[:MAX_ROWS])


def _promises(found: Verdict) -> Iterator[str]:
    yield "<h2>Promises</h2><table>"
    for audit in Audit:
        value = found.of(audit)
        count = {
            Value.KEPT: f"kept ({found.judged.get(audit.value, 0):,} cases)",
            Value.BROKEN: f"broken: {_findings_text(found, audit)}",
            Value.UNKNOWN: f"unknown: {escape(found.unknown.get(audit.value, NO_CASE))}",
        }[value]
        mark = _MARKS[value]
        yield (
            f'<tr><td class="{value.value}">{mark}</td><td>{escape(PROMISES[audit])}</td>'
            f'<td class="{value.value}">{count}</td></tr>'
        )
    yield "</table>"


def _findings_text(found: Verdict, audit: Audit) -> str:
    count, cases = found.broken.get(audit.value, 0), found.judged.get(audit.value, 0)
    return f"{count:,} of {cases:,}" if count <= cases else f"{count:,} findings"


def _matrix(found: Verdict, cases: CaseTable) -> Iterator[str]:
    names = sorted({name for name, _ in cases})
    if not names:
        return
    counts = Counter((each.participant_id, each.audit) for each in found.findings)
    about = "Findings of each participant; ✓ where it was judged without one, ? where some was not."
    if len(names) < found.participants:
        about += f" {len(names)} of {found.participants:,} participants, those with findings first."
    yield f'<h2>Participants and promises</h2><p class="about">{about}</p><table class="matrix">'
    heads = "".join(
        f'<th title="{escape(PROMISES[audit])}">{audit.value.replace("_", " ")}</th>'
        for audit in Audit
    )
    yield f"<tr><th>participant</th>{heads}</tr>"
    for name in names:
        cells = "".join(
            _mark(counts[name, audit.value], *cases.get((name, audit.value), (0, None)))
            for audit in Audit
        )
        yield f"<tr><td>{escape(name[:40])}</td>{cells}</tr>"
    yield "</table>"


def _mark(findings: int, cases: int, why: str | None) -> str:
    if findings:
        return f'<td class="broken">{findings:,}</td>'
    if why is not None:
        return f'<td class="unknown" title="{escape(why)}">?</td>'
    return f'<td class="kept" title="{cases:,} cases">✓</td>' if cases else "<td>&ndash;</td>"


def _timeline(buckets: Sequence[TimeBucket]) -> Iterator[str]:
    drawn = draw_timeline(buckets)
    if drawn:
        yield "<h2>Latency over time</h2>"
        yield '<p class="about">From the sender to the logs of others, by when it was accepted.</p>'
        yield f'<div class="picture">{drawn}</div>{LEGEND}'


def _findings(found: Verdict, evidence: Sequence[Evidence]) -> Iterator[str]:
    """By severity, the worst first; with links to what shows them."""
    if not found.findings:
        return
    links: dict[Finding | str, int] = {}
    for number, each in enumerate(evidence, 1):
        links |= {each.finding: number, each.finding.message_id or each.finding: number}
    by_severity: defaultdict[int, list[Finding]] = defaultdict(list)
    for finding in found.findings:
        by_severity[severity(finding)].append(finding)
    total = sum(found.broken.values())
    about = f"{total:,} in all, the worst first, with times by the clocks of the journals."
    yield f'<h2>Findings</h2><p class="about">{about}</p>'
    columns = ["promise", "participant", "message", "since", "what", "evidence"]
    head = "".join(f"<th>{name}</th>" for name in columns)
    for rank, findings in sorted(by_severity.items()):
        yield f"<h3>{escape(SEVERITIES[rank].capitalize())}: {len(findings):,}</h3>"
        yield f'<table class="rows"><tr class="head">{head}</tr>'
        for finding in sorted(findings, key=lambda each: (each not in links, each))[:MAX_ROWS]:
            link = links.get(finding, links.get(finding.message_id))
            yield _finding(columns, finding, link)
        yield "</table>"


def _finding(columns: Sequence[str], finding: Finding, link: int | None) -> str:
    values = [
        escape(finding.audit.replace("_", " ")),
        escape(finding.participant_id),
        _short(finding.message_id),
        time_text(finding.at_ms),
        _short(finding.detail),
        "" if link is None else f'<a href="#evidence-{link}">evidence {link}</a>',
    ]
    cells = zip(columns, values, strict=True)
    row = "".join(f'<td data-label="{name}">{v}</td>' if v else "<td></td>" for name, v in cells)
    return f"<tr>{row}</tr>"


def _evidence(evidence: Sequence[Evidence]) -> Iterator[str]:
    if evidence:
        about = f"Of the worst findings, of each message one: {len(evidence)}."
        yield f'<h2>Evidence</h2><p class="about">{about}</p>'
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


def _set_aside(found: Verdict) -> Iterator[str]:
    if found.set_aside:
        columns = ["file", "why", "lines", "first line"]
        about = "What could not be read. All else was judged."
        yield section("Set aside", about, columns, [tuple(e) for e in found.set_aside][:MAX_ROWS])


def as_json(found: Verdict, evidence: Sequence[Evidence]) -> str:
    """Return the verdict and its evidence as the output of `check --json`."""
    shown = [each.to_dict() for each in evidence]
    return json.dumps(json.loads(found.to_json()) | {"evidence": shown}, indent=1) + "\n"
