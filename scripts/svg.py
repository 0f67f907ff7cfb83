"""SVG, as scripts/plots and scripts/compare draw it."""

INK, FAINT, BLUE, GREY, RED = "#1f2328", "#59636e", "#0969da", "#8c959f", "#cf222e"


def tag(name, content=None, **attributes):
    """An element; `text_anchor` is written as text-anchor, and a number that is not an int with one decimal."""
    write = lambda value: f"{value:.1f}" if isinstance(value, float) else str(value)
    inside = "".join(f' {key.replace("_", "-")}="{write(value)}"' for key, value in attributes.items())
    return f"<{name}{inside}/>" if content is None else f"<{name}{inside}>{content}</{name}>"


def document(width, height, title, subtitle, body):
    """A page with a title, a line below it, and the elements of `body`; contents of elements are escaped already."""
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img">',
        tag("rect", width=width, height=height, fill="#ffffff"),
        tag("text", title, x=16, y=26, font_size=16, font_weight=600, fill=INK),
        tag("text", subtitle, x=16, y=46, fill=FAINT),
        *body,
        "</svg>",
    )) + "\n"
