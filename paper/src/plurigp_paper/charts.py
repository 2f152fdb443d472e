"""The paper's other charts as small SVG files: violins with boxes, bars with thresholds, heat maps, images."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import gaussian_kde

from plurigp_paper.picture import COLOURS
from plurigp_paper.svg import END, MIDDLE, Number, Place, axis, text, ticks, turned, write_svg

HEIGHT, LEFT, TOP, BOTTOM, STEP = 320, 84, 36, 56, 110
CELL = (64, 18)  # of a heat map
COLD, HOT = np.array([33, 102, 172]), np.array([179, 88, 6])


def violin_chart(
    path: Path, title: str, y_label: str, groups: Mapping[str, Sequence[Number]], with_zero: bool = False
) -> None:
    """Per group a violin, a box from quartile to quartile with the median, and every value; a line at zero if asked."""
    values = {name: np.asarray(own, float) for name, own in groups.items()}
    every = np.concatenate([*values.values(), [0.0] if with_zero else []])
    width = LEFT + STEP * len(values) + 16
    y_at = axis(every, HEIGHT - BOTTOM, TOP, False)
    marks = _frame(width, title, y_label, every, y_at)
    if with_zero:
        marks.append(f'<path d="M{LEFT},{y_at(0):.1f}H{width - 8}" stroke="#888" stroke-dasharray="5 4"/>')
    for number, (name, own) in enumerate(values.items()):
        centre, colour = LEFT + STEP * (number + 0.5), COLOURS[number % len(COLOURS)]
        marks += [*_violin(own, centre, y_at, colour), *_box(own, centre, y_at), *_points(own, centre, y_at, colour)]
        marks += _two_lines(centre, HEIGHT - BOTTOM + 20, name)
    write_svg(path, width, HEIGHT, marks)


def _frame(width: Number, title: str, y_label: str, values: np.ndarray, y_at: Place) -> list[str]:
    return [
        f'<path d="M{LEFT},{TOP - 6}V{HEIGHT - BOTTOM}H{width - 8}" fill="none" stroke="#444"/>',
        *(text(LEFT - 6, y_at(tick) + 4, f"{tick:g}", END) for tick in ticks(values, False)),
        text(12, 20, title, 'font-weight="bold"'),
        turned(16, HEIGHT / 2, y_label),
    ]


def _two_lines(x: Number, y: Number, words: str) -> list[str]:
    """Long names are broken at the space nearest to their middle."""
    spaces = [place for place, character in enumerate(words) if character == " "]
    if len(words) <= 14 or not spaces:
        return [text(x, y, words, MIDDLE)]
    at = min(spaces, key=lambda place: abs(place - len(words) / 2))
    return [text(x, y, words[:at], MIDDLE), text(x, y + 16, words[at + 1 :], MIDDLE)]


def _violin(values: np.ndarray, centre: Number, y_at: Place, colour: str) -> list[str]:
    if len(values) < 3 or np.ptp(values) < 1e-12:
        return []
    at = np.linspace(values.min(), values.max(), 40)
    half = gaussian_kde(values)(at)
    half *= 0.38 * STEP / half.max()
    outline = [(centre - w, y_at(v)) for v, w in zip(at, half, strict=True)]
    outline += [(centre + w, y_at(v)) for v, w in zip(at[::-1], half[::-1], strict=True)]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
    return [f'<polygon points="{corners}" fill="{colour}" fill-opacity="0.18" stroke="{colour}"/>']


def _box(values: np.ndarray, centre: Number, y_at: Place) -> list[str]:
    low, middle, high = (y_at(float(q)) for q in np.quantile(values, [0.25, 0.5, 0.75]))
    size = f'width="24" height="{max(low - high, 0.5):.1f}"'
    return [
        f'<rect x="{centre - 12:.1f}" y="{high:.1f}" {size} fill="white" fill-opacity="0.7" stroke="#333"/>',
        f'<path d="M{centre - 12:.1f},{middle:.1f}h24" stroke="#333" stroke-width="2"/>',
    ]


def _points(values: np.ndarray, centre: Number, y_at: Place, colour: str) -> list[str]:
    shift = np.random.default_rng(0).uniform(-9, 9, len(values))
    return [
        f'<circle cx="{centre + s:.1f}" cy="{y_at(float(v)):.1f}" r="2" fill="{colour}" fill-opacity="0.7"/>'
        for v, s in zip(values, shift, strict=True)
    ]


def bar_chart(path: Path, title: str, y_label: str, bars: Mapping[str, tuple[Number, Number]]) -> None:
    """Per name a bar and, as a line across it, the threshold it must exceed."""
    every = np.array([0.0, *(v for pair in bars.values() for v in pair if np.isfinite(v))])
    width = LEFT + STEP * len(bars) + 16
    y_at = axis(every, HEIGHT - BOTTOM, TOP, False)
    marks = _frame(width, title, y_label, every, y_at)
    for number, (name, (height, limit)) in enumerate(bars.items()):
        centre = LEFT + STEP * (number + 0.5)
        marks.append(f'<rect x="{centre - 26:.1f}" y="{y_at(height):.1f}" width="52" '
                     f'height="{y_at(0) - y_at(height):.1f}" fill="{COLOURS[number % len(COLOURS)]}"/>')  # fmt: skip
        if np.isfinite(limit):
            marks.append(f'<path d="M{centre - 36:.1f},{y_at(limit):.1f}h72" stroke="#111" stroke-dasharray="6 3"/>')
        marks += _two_lines(centre, HEIGHT - BOTTOM + 20, name)
    write_svg(path, width, HEIGHT, marks)


def heat_chart(path: Path, title: str, rows: Sequence[str], columns: Sequence[str], values: np.ndarray) -> None:
    """A coloured cell with its number for every row and column; blue below zero, orange above, NaN left white."""
    left, top = 170, 56
    reach = max(float(np.nanmax(np.abs(values))), 1e-9)
    marks = [text(12, 20, title, 'font-weight="bold"')]
    marks += [text(left + CELL[0] * (c + 0.5), top - 8, name, MIDDLE) for c, name in enumerate(columns)]
    for r, name in enumerate(rows):
        y = top + CELL[1] * r
        marks.append(text(left - 8, y + 13, name, END))
        for c, value in enumerate(values[r]):
            if np.isfinite(value):
                x = left + CELL[0] * c
                marks.append(f'<rect x="{x}" y="{y}" width="{CELL[0] - 1}" height="{CELL[1] - 1}" '
                             f'fill="{_shade(value / reach)}"/>')  # fmt: skip
                marks.append(text(x + CELL[0] / 2, y + 13, f"{value:.1f}", f'{MIDDLE} font-size="11"'))
    write_svg(path, left + CELL[0] * len(columns) + 16, top + CELL[1] * len(rows) + 12, marks)


def _shade(value: Number) -> str:
    """White at zero, full colour at ±1."""
    colour = 255 + (np.where(value > 0, HOT, COLD) - 255) * min(abs(value), 1.0) * 0.8
    return "#" + "".join(f"{int(part):02x}" for part in colour)


def image_chart(path: Path, title: str, rows: Mapping[str, np.ndarray], side: int = 28) -> None:
    """Per name a row of square grey images [n side²], 1 is black."""
    scale, left, top = 2.0, 120, 36
    size = side * scale + 6
    marks = [text(12, 20, title, 'font-weight="bold"')]
    for r, (name, images) in enumerate(rows.items()):
        marks.append(text(left - 8, top + size * (r + 0.5), name, END))
        for c, image in enumerate(images):
            grey = (255 * (1 - np.clip(image, 0, 1))).astype(np.uint8).reshape(side, side)
            marks.append(f'<image x="{left + size * c:g}" y="{top + size * r:g}" width="{side * scale:g}" '
                         f'height="{side * scale:g}" image-rendering="pixelated" '
                         f'href="data:image/png;base64,{b64encode(png(grey)).decode()}"/>')  # fmt: skip
    n = max(len(images) for images in rows.values())
    write_svg(path, left + size * n + 12, top + size * len(rows) + 8, marks)


def png(grey: np.ndarray) -> bytes:
    """A grey image [height width] of bytes as a PNG file."""
    height, width = grey.shape

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    lines = b"".join(b"\0" + line.tobytes() for line in grey)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
