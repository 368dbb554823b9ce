"""Tables that are printed in their full width. Neither a pipe nor a narrow terminal cuts the rows
of a table."""

from collections.abc import Iterable

from reliable_channel import printable
from reliable_channel.spi import say


def print_table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, labels: int) -> None:
    """Print a table with headings and rows. The first `labels` columns are texts, and the other
    columns are numbers."""
    cells = [headings, *(tuple(printable(cell) for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        padded = (
            cell.ljust(width) if place < labels else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        say("  ".join(padded).rstrip(), style=None if number else "bold")
