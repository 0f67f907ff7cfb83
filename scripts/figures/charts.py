"""Parts of figures that several topics share: scales, legends, and rows of dots."""

import dataclasses
import math

from svg import BLUE, FAINT, GREY, INK, LINE, ORANGE, PAPER, RED, document, tag, text

WIDTH = 860  # about that of a page on GitHub
LETTER = 7  # width of a letter of 12 px


@dataclasses.dataclass(frozen=True)
class Scale:
    """From values to places; logarithmic unless `linear`."""
    low: float
    high: float
    begin: float
    end: float
    linear: bool = False

    def __call__(self, value):
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low) if self.linear else math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + (self.end - self.begin) * share


@dataclasses.dataclass(frozen=True)
class Axis:
    """The values of a scale: its ends, ticks, and lines to compare with, as (value, color, label)."""
    low: float
    high: float
    ticks: tuple
    lines: tuple = ()
    linear: bool = False
    form: str = "g"


EQUAL = ((1, RED, "equal"),)
TICKS = (0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24)


def ratio_axis(ratios):
    """An axis for ratios: from the tick below the least to the one above the largest."""
    low = max([tick for tick in TICKS if tick <= min(ratios)], default=TICKS[0])
    high = min([tick for tick in TICKS if tick >= max(ratios)], default=TICKS[-1])
    low, high = min(low, 0.75), max(high, 1.5)
    ticks = [tick for tick in TICKS if low <= tick <= high]
    if high / low > 20:  # fewer, so that labels do not touch
        ticks = [tick for tick in ticks if tick not in (0.75, 1.5, 3, 6, 12, 24)]
    return Axis(low, high, tuple(ticks), EQUAL)


def color_of(ratio):
    """Of a ratio that is above 1, below, or 1.00."""
    return GREY if f"{ratio:.2f}" == "1.00" else BLUE if ratio > 1 else ORANGE


def legend(entries, x, y):
    """Dots with names, from left to right; an entry is (name, color) or (name, color, "hollow")."""
    body = []
    for name, color, *hollow in entries:
        body.append(dot(x + 5, y - 4, color, hollow=bool(hollow)))
        body.append(text(name, x + 15, y, fill=FAINT, font_size=12))
        x += 30 + LETTER * len(name)
    return body


def dot(x, y, color, radius=4, hollow=False):
    if hollow:
        return tag("circle", cx=float(x), cy=float(y), r=radius - 0.5, fill=PAPER, stroke=color, stroke_width=1.5)
    return tag("circle", cx=float(x), cy=float(y), r=radius, fill=color)


@dataclasses.dataclass
class Line:
    """A line of dots: a label, dots as (value, color[, radius[, "hollow"]]), drawn in order, and a note on the right."""
    label: str
    dots: list
    note: str = ""
    joined: bool = False  # by a line from the least to the largest


def dot_plot(title, subtitle, sections, axis, names=(), note_width=60, height_of_line=15):
    """Sections of (heading, lines); a heading may be empty."""
    longest = max(len(line.label) for _, lines in sections for line in lines)
    left = int(24 + LETTER * longest)
    x = Scale(axis.low, axis.high, left, WIDTH - note_width - 12, axis.linear)
    y = 90 + (20 if names else 0)
    body = legend(names, 16, 70) if names else []
    top = y - 6
    for tick in axis.ticks:
        body.append(text(format(tick, axis.form), x(tick), top - 6, "middle", FAINT, font_size=11))
    rows = []
    for heading, lines in sections:
        if heading:
            rows.append(text(heading, 16, y + 11, font_weight=600))
            y += 20
        for line in lines:
            middle = y + height_of_line / 2
            rows.append(text(line.label, left - 10, middle + 4, "end", font_size=12))
            if line.joined:
                ends = [value for value, *_ in line.dots]
                rows.append(tag("line", x1=x(min(ends)), x2=x(max(ends)), y1=middle, y2=middle, stroke=GREY))
            for value, color, *more in line.dots:
                rows.append(dot(x(value), middle, color, *more[:1], hollow="hollow" in more))
            rows.append(text(line.note, WIDTH - 12, middle + 4, "end", FAINT, font_size=12))
            y += height_of_line
        y += 8
    bottom = y - 4
    for tick in axis.ticks:
        body.append(tag("line", x1=x(tick), x2=x(tick), y1=top, y2=bottom, stroke=LINE))
    for value, color, label in axis.lines:
        body.append(tag("line", x1=x(value), x2=x(value), y1=top, y2=bottom, stroke=color, stroke_dasharray="4 3"))
        body.append(text(label, x(value), bottom + 14, "middle", color, font_size=12))
    return document(WIDTH, int(bottom + (24 if axis.lines else 12)), title, subtitle, body + rows)
