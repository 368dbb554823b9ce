"""Tables in their full width. Neither a pipe nor a narrow terminal cuts them."""

from collections.abc import Iterable

from reliable_channel import printable
from reliable_channel.spi import say


def print_table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, labels: int) -> None:
    """Print rows below headings. The first `labels` columns are texts, the others figures."""
    cells = [headings, *(tuple(printable(cell) for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        padded = (
            cell.ljust(width) if place < labels else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        say("  ".join(padded).rstrip(), style=None if number else "bold")
