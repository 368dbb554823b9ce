"""Write the table of docs/migration-0.2.md from the names that moved (`make docs`)."""

from itertools import groupby
from pathlib import Path

from reliable_channel._moved import MOVED, RENAMED

PAGE = Path(__file__).with_name("migration-0.2.md")
BEGIN, END = "<!-- names -->\n", "<!-- end of names -->\n"


def page() -> str:
    """The page as it stands, with the table of today."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    lines = ["| from `reliable_channel` to | names |", "|---|---|"]
    for home, names in groupby(sorted(MOVED, key=lambda name: (MOVED[name], name)), MOVED.get):
        lines.append(f"| `reliable_channel.{home}` | {', '.join(f'`{name}`' for name in names)} |")
    lines += ["", "| 0.1 | 0.2 |", "|---|---|"]
    lines += [f"| `{old}` | `{new}` |" for old, new in sorted(RENAMED.items())]
    return before + BEGIN + "".join(f"{line}\n" for line in lines) + END + after


if __name__ == "__main__":
    PAGE.write_text(page())
