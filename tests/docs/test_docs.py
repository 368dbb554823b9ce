"""The pages say what the code says."""

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from docs import choosing, commands, generate, message_states
from reliable_channel import ChannelOptions, MessageReceived, ReliableChannel
from reliable_channel.events import AnyEvent
from reliable_channel.transport import MemoryNetwork
from reliable_channel_lab.commands.comparison_plots import plots
from tests.channel.world import make_channel

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


@pytest.mark.parametrize(
    "written",
    [commands, generate, choosing, message_states],
    ids=lambda module: module.__name__,
)
def test_a_generated_page_is_up_to_date(
    written: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RELIABLE_CHANNEL_PLUGINS", raising=False)  # commands of all plugins
    assert written.PAGE.read_text() == written.page(), "run `make docs`"


def test_plots_show_the_results() -> None:
    for page in choosing.SHORT_PAGES:
        assert page.read_text() == choosing.short_page(page), "run `make docs`"
    for name, drawn in plots(choosing.results()).items():
        assert (choosing.DIRECTORY / name).read_bytes() == drawn, "run `make docs`"


def anchors(page: Path) -> set[str]:
    """The anchors of headings, as the site makes them."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    titles = re.findall(r"(?m)^#+ (.+)$", text)
    words = [re.sub(r"[^\w\s-]", "", title.lower()).strip() for title in titles]
    return {re.sub(r"[-\s]+", "-", each) for each in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8"))
    for target, anchor in links:
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        on_site = page.is_relative_to(DOCS) and not linked.is_relative_to(DOCS)
        assert not on_site, f"{page.name} links to {target}, which the site does not have"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked), f"{page.name} links to {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_snippets_compile(page: Path) -> None:
    for snippet in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if page.name == "programs.md" else 0
        compile(snippet, page.name, "exec", flags)


def test_the_table_of_names_has_every_event_and_only_names_that_exist() -> None:
    page = (DOCS / "how-to" / "from-js-waku.md").read_text().partition("## Names")[2]
    ours = [line.split(" | ")[2] for line in page.splitlines() if line.startswith("| ")]
    ours += [line for line in page.splitlines() if line.startswith("Without a counterpart")]
    named = set(re.findall(r"`(\w+)", " ".join(ours)))
    events = {kind.__name__ for kind in get_args(AnyEvent)}
    options = {field.name for field in fields(ChannelOptions)}
    arguments = set(inspect.signature(ReliableChannel).parameters)
    public = {"ReliableChannel", *dir(ReliableChannel), *arguments, "async"}
    assert events <= named
    assert named <= events | options | public | {"Request", "both", "nim"}


@pytest.mark.parametrize("page", ["design.md", "decisions.md"])
def test_the_files_that_a_page_names_exist(page: str) -> None:
    named = set(re.findall(r"[\w/]+\.py\b", (DOCS / page).read_text()))
    folders = ("reliable_channel", "waku", "plugins", "docs", "tests")
    files = {f"/{file.relative_to(ROOT)}" for one in folders for file in (ROOT / one).rglob("*.py")}
    gone = [name for name in named if not any(file.endswith(f"/{name}") for file in files)]
    assert sorted(gone) == []


def test_the_page_adds_up_the_rows_of_the_interop_matrix() -> None:
    added: dict[str, list[int]] = {}
    for section in re.split(r"(?m)^\*\*", (ROOT / "interop" / "RESULTS.md").read_text())[1:]:
        rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| passes")]
        with_js = [row for row in rows if row[1] != "ours ↔ ours"]
        missed = [row for row in with_js if row[-1] != "none |"]
        added[section.partition("**")[0]] = [len(rows), len(with_js), len(missed)]
    table = re.findall(
        r"(?m)^\| (\d+\w?\. [^|]+) \| (\d+) \| (\d+) \| (\d+) \|$",
        (DOCS / "interop.md").read_text(),
    )
    assert {title: [int(each) for each in numbers] for title, *numbers in table} == added


def test_every_page_has_its_place_on_the_site() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [str(page.relative_to(DOCS)) for page in PAGES if page.is_relative_to(DOCS)]
    assert [page for page in pages if f" {page}\n" not in navigation] == []


def test_nothing_of_pycryptodome_is_used_but_the_hash_that_others_lack() -> None:
    sources = [*(ROOT / "reliable_channel").rglob("*.py"), *(ROOT / "waku").rglob("*.py")]
    sources += (ROOT / "plugins").glob("*/reliable_channel_*/**/*.py")
    uses = [
        " ".join(line.split()[:4])
        for source in sources
        for line in source.read_text().splitlines()
        if re.match(r"\s*(from|import) Crypto\b", line)
    ]
    assert set(uses) == {"from Crypto.Hash import keccak"}


def test_the_repair_policy_of_the_page_makes_a_channel() -> None:
    programs = re.findall(r"```python\n(.*?)```", (DOCS / "repair.md").read_text(), re.DOTALL)
    (program,) = (each for each in programs if "RepairStep" in each)
    names: dict[str, Any] = {}
    exec(program, names)
    assert isinstance(names["channel"], ReliableChannel)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("page", "text"), [("repair.md", "sync_status"), ("how-to/troubleshoot.md", "explain(")]
)
async def test_a_snippet_about_an_open_channel_runs(page: str, text: str) -> None:
    snippets = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    (snippet,) = (each for each in snippets if text in each)
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice")
    async with alice as channel, make_channel(network.transport(), "bob") as bob:
        await bob.send(b"hello")
        async for event in channel.events():
            if isinstance(event, MessageReceived):
                exec(snippet, {"channel": channel, "event": event})
                break
