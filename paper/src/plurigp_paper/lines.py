"""A line chart as a small SVG file, for the pages that show the results."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from plurigp_paper.picture import COLOURS
from plurigp_paper.svg import END, MIDDLE, Number, axis, text, ticks, turned, write_svg

WIDTH, HEIGHT, LEFT, BOTTOM, LEGEND = 520, 300, 70, 46, 200
MOST_MARKED = 60  # points of a line that are marked
Series = Mapping[str, tuple[Sequence[Number], Sequence[Number]]]  # name -> x, y


def bound_chart(path: Path, traces: Series) -> None:
    """The bound by epoch; the first two epochs, which start anywhere, are left out."""
    late = {name: (x[2:], y[2:]) for name, (x, y) in traces.items() if len(x) > 2}
    if late:
        line_chart(path, "Bound by epoch", "epoch", "nats per row", late, log_y=False)


def line_chart(
    path: Path, title: str, x_label: str, y_label: str, series: Series, log_y: bool = True, log_x: bool = True
) -> None:
    """One line per series, every measured point marked; both axes logarithmic unless told otherwise."""
    xs, ys = (np.concatenate([np.asarray(pair[part], float) for pair in series.values()]) for part in (0, 1))
    x_at = axis(xs, LEFT, WIDTH - 16, log_x)
    y_at = axis(ys, HEIGHT - BOTTOM, 36, log_y)
    marks = [f'<path d="M{LEFT},30V{HEIGHT - BOTTOM}H{WIDTH - 8}" fill="none" stroke="#444"/>']
    for number, (name, (x, y)) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x_at(a), y_at(b)) for a, b in zip(x, y, strict=True)]
        marks.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}" fill="none" '
                     f'stroke="{colour}" stroke-width="2"/>')  # fmt: skip
        if len(places) <= MOST_MARKED:
            marks += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places]
        marks.append(text(WIDTH + 24, 50 + 22 * number, name, f'fill="{colour}"'))
    marks += [text(x_at(tick), HEIGHT - BOTTOM + 18, f"{tick:g}", MIDDLE) for tick in ticks(xs, log_x)]
    marks += [text(LEFT - 6, y_at(tick) + 4, f"{tick:g}", END) for tick in ticks(ys, log_y)]
    marks += [
        text(LEFT, 20, title, 'font-weight="bold"'),
        text((LEFT + WIDTH) / 2, HEIGHT - 8, x_label, MIDDLE),
        turned(16, HEIGHT / 2, y_label),
    ]
    write_svg(path, WIDTH + LEGEND, HEIGHT, marks)
