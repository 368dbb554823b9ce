"""Curves as small SVG diagrams with a legend, equal in every byte for equal figures.

Plots need matplotlib, from the extra `pip install 'reliable-channel-lab[plots]'`. Only this module
needs matplotlib, and imports it when something is drawn.

Lines differ in colour, dashes and marker, so that readers without colour vision can distinguish
them. The colours are those of Okabe and Ito (2008), which most colour-blind people can distinguish.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, Literal

from reliable_channel.errors import ReliableChannelError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scale = Literal["linear", "log"]
Dashes = Literal["solid", "dashed", "dotted"]
Format = Literal["svg", "png"]

COLOURS: Final = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#808080"),
)
_MARKERS: Final = "os^DvP*."
_GREY: Final = "#606060"
PANEL_INCHES: Final = (2.7, 1.9)
_LEFT_INCHES, _RIGHT_INCHES, _BESIDE_INCHES = 0.8, 0.15, 0.25
_HEAD_INCHES, _TITLE_INCHES, _BETWEEN_INCHES, _BELOW_INCHES = 0.3, 0.3, 0.95, 0.75
_LEGEND_ROW_INCHES, _LEGEND_COLUMN_INCHES = 0.2, 2.1
_STYLE: Final[Any] = {
    "svg.hashsalt": "reliable-channel",
    "svg.fonttype": "none",  # text stays text: it can be searched, and read out
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
}


class PlotsUnavailable(ReliableChannelError):
    """Error that matplotlib, the package for plots, is not installed."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Line of a plot with its label. Lines with the same label have one entry in the legend, and
    should look alike."""

    label: str
    points: Sequence[tuple[float, float]]
    """Points of the curve as pairs of x and y, in order of x."""
    colour: int = 0
    """Number of the curve's colour and marker in `COLOURS`. Numbers after the last colour start
    again with the first colour."""
    dashes: Dashes = "solid"
    spread: Sequence[tuple[float, float, float]] = ()
    """Band around the line, as triples of x, smallest y and largest y."""
    absent: Sequence[float] = ()
    """Values of x without a figure, drawn as a cross on the upper edge of the plot. The `note` of
    the panel should say why figures are missing."""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    lines: Sequence[Curve]
    x_label: str = ""
    y_label: str = ""
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    """Scale of the y axis. On a `log` scale, values that are not above 0 are left out. If no value
    is above 0, the scale is linear."""
    note: str = ""
    """Short remark inside the plot, for example about missing values."""


def draw(
    rows: Sequence[Sequence[Panel]],
    *,
    title: str = "",
    to: Format = "svg",
    panel_inches: tuple[float, float] = PANEL_INCHES,
) -> bytes:
    """Draw panels in rows, with a legend below. The panels of a row share their y axis.

    Raises:
        PlotsUnavailable: matplotlib is not installed.
        ValueError: there is nothing to draw.
    """
    if not any(rows):
        raise ValueError("the plot has no panels")
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotsUnavailable(
            "plots are drawn by matplotlib, which is not installed: "
            "pip install 'reliable-channel-lab[plots]'"
        ) from error

    columns = max(map(len, rows))
    lines = {line.label: line for row in rows for panel in row for line in panel.lines}
    width, inner = _spread(columns, panel_inches[0], _BESIDE_INCHES, _LEFT_INCHES, _RIGHT_INCHES)
    in_a_row = max(1, int(width / _LEGEND_COLUMN_INCHES))
    foot = _BELOW_INCHES + _LEGEND_ROW_INCHES * -(-len(lines) // in_a_row)
    head = _HEAD_INCHES + (_TITLE_INCHES if title else 0)
    height, outer = _spread(len(rows), panel_inches[1], _BETWEEN_INCHES, foot, head)
    with matplotlib.rc_context(_STYLE):
        figure = Figure((width, height))
        grid = figure.subplots(
            len(rows),
            columns,
            sharey="row",
            squeeze=False,
            gridspec_kw={
                **dict(zip(("left", "right", "wspace"), inner, strict=True)),
                **dict(zip(("bottom", "top", "hspace"), outer, strict=True)),
            },
        )
        for row, axes_row in zip(rows, grid, strict=True):
            for number, axes in enumerate(axes_row):
                if number < len(row):
                    _panel(axes, row[number], is_first=number == 0)
                else:
                    axes.set_axis_off()
            _one_scale(row, axes_row)
        if title:
            figure.text(0.12 / width, 1 - 0.3 / height, title, fontsize=11, fontweight="bold")
        _legend(figure, lines.values(), in_a_row)
        return _saved(figure, to)


def _spread(
    count: int, panel: float, gap: float, before: float, after: float
) -> tuple[float, tuple[float, float, float]]:
    """The length of so many panels with gaps, in inches; and where they begin and end as shares of
    it, with the gap as a share of a panel."""
    length = before + count * panel + (count - 1) * gap + after
    return length, (before / length, 1 - after / length, gap / panel)


def _panel(axes: "Axes", panel: Panel, *, is_first: bool) -> None:
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label if is_first else "")
    is_log = panel.y_scale == "log"
    for line in panel.lines:
        points = [(x, y) for x, y in line.points if y > 0 or not is_log]
        axes.plot([x for x, _ in points], [y for _, y in points], **_look(line))
        spread = [(x, low, high) for x, low, high in line.spread if low > 0 or not is_log]
        if spread:
            x, low, high = zip(*spread, strict=True)
            axes.fill_between(x, low, high, color=_colour(line), alpha=0.15, linewidth=0)
        edge = axes.get_xaxis_transform()
        crosses: dict[str, Any] = {
            "marker": "x",
            "linestyle": "",
            "color": _colour(line),
            "clip_on": False,
        }
        axes.plot(line.absent, [1.0] * len(line.absent), transform=edge, **crosses)
    xs = sorted({x for line in panel.lines for x, *_ in [*line.points, *zip(line.absent)]})
    if panel.x_scale == "log":
        axes.set_xscale("log")
        axes.set_xticks(xs, labels=[f"{x:,g}" for x in xs], rotation=45)
        axes.minorticks_off()
    # Panels of the same x are of the same width, though one has no points there.
    axes.update_datalim([(x, 1.0) for x in xs], updatey=False)
    axes.autoscale_view(scaley=False)
    if panel.note:
        words: dict[str, Any] = {"va": "top", "fontsize": 7, "color": _GREY, "style": "italic"}
        words["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}
        axes.text(0.03, 0.96, panel.note, transform=axes.transAxes, **words)


def _one_scale(row: Sequence[Panel], axes_row: Sequence["Axes"]) -> None:
    """The y axis that the panels of a row share."""
    heights = [y for panel in row for line in panel.lines for _, y in line.points]
    if any(panel.y_scale == "log" for panel in row) and any(y > 0 for y in heights):
        axes_row[0].set_yscale("log")
        axes_row[0].yaxis.set_major_formatter("{x:,g}")
    else:
        axes_row[0].set_ylim(bottom=min(0, *heights, 0))


def _legend(figure: "Figure", lines: Sequence[Curve] | Any, in_a_row: int) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **_look(line)) for line in lines]
    if handles:
        shape: dict[str, Any] = {"ncols": in_a_row, "frameon": False, "handlelength": 3}
        figure.legend(handles=handles, loc="lower left", **shape)


def _look(line: Curve) -> dict[str, Any]:
    return {
        "label": line.label,
        "color": _colour(line),
        "linestyle": line.dashes,
        "marker": _MARKERS[line.colour % len(_MARKERS)],
        "markerfacecolor": _colour(line) if line.dashes == "solid" else "white",
    }


def _colour(line: Curve) -> str:
    return COLOURS[line.colour % len(COLOURS)]


def _saved(figure: "Figure", to: Format) -> bytes:
    written = BytesIO()
    metadata = {"Date": None, "Creator": "reliable-channel"} if to == "svg" else None
    figure.savefig(written, format=to, dpi=110, metadata=metadata)
    return written.getvalue()
