"""SVG, as scripts/plots and scripts/compare draw it.

Elements have the colors of a light page. The style of a document replaces them by those of DARK where the reader prefers a dark page;
"black" and "white" stay.
"""

import html

INK, FAINT, LINE, PAPER = "#1f2328", "#59636e", "#d0d7de", "#ffffff"
BLUE, GREY, RED, ORANGE, PURPLE, GREEN, YELLOW = "#0969da", "#8c959f", "#cf222e", "#bc4c00", "#8250df", "#1a7f37", "#bf8700"
RAMP = ("#eff2f5", "#d6e8fb", "#a5cdf9", "#5aa2ee", "#1f75d8", "#0a4fa8")  # from the worst to the best
DARK = {
    INK: "#e6edf3", FAINT: "#9198a1", LINE: "#30363d", PAPER: "#0d1117",
    BLUE: "#4493f8", GREY: "#7d8590", RED: "#f85149", ORANGE: "#f0883e", PURPLE: "#ab7df8", GREEN: "#3fb950", YELLOW: "#d29922",
    **dict(zip(RAMP, ("#161b22", "#14263d", "#17375e", "#1b4d87", "#2064b4", "#2f81f7"))),
}
STYLE = "".join(f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}' for light, dark in DARK.items())


def tag(name, content=None, **attributes):
    """An element; `text_anchor` is written as text-anchor, and a number that is not an int with one decimal."""
    write = lambda value: f"{value:.1f}" if isinstance(value, float) else str(value)
    inside = "".join(f' {key.replace("_", "-")}="{write(value)}"' for key, value in attributes.items())
    return f"<{name}{inside}/>" if content is None else f"<{name}{inside}>{content}</{name}>"


def text(content, x, y, anchor="start", fill=INK, **attributes):
    """A line of plain text."""
    return tag("text", html.escape(content, quote=False), x=x, y=y, text_anchor=anchor, fill=fill, **attributes)


def document(width, height, title, subtitle, body):
    """A page with a title, a line below it, and the elements of `body`; contents of elements are escaped already."""
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img">',
        tag("style", f"@media (prefers-color-scheme: dark){{{STYLE}}}"),
        tag("rect", width=width, height=height, fill=PAPER),
        tag("text", title, x=16, y=26, font_size=16, font_weight=600, fill=INK),
        tag("text", subtitle, x=16, y=46, fill=FAINT),
        *body,
        "</svg>",
    )) + "\n"
