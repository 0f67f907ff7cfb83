"""Bandwidth and operations per second of each row against the card's copy and peak. Results hold a share of the ceiling, not bytes and
operations: these are computed from the row's name, by WORK, and compared with that share where a file has one."""

import math
import re
import sys

from results import cards, gpu, newest_rows, wrapped
from svg import BLUE, FAINT, GREEN, GREY, LINE, ORANGE, PURPLE, RED, YELLOW, document, tag, text

from .charts import WIDTH, Axis, Line, Scale, dot, dot_plot, legend
from .speed import ELSEWHERE, PREFIX, SLOWER_PEER, labels, origin

# NVIDIA's data sheets, dense, in operations per second. Both cards have the same chip: H100 SXM and H200.
PEAKS = {card: {"8-bit": 1979e12, "16-bit": 989e12, "tf32": 494e12, "f32": 67e12} for card in ("h100", "h200")}
COLORS = {"8-bit": GREEN, "16-bit": BLUE, "tf32": ORANGE, "f32": PURPLE}
COPY_OF_BENCH = 4.3e12  # bytes per second: what a share of an H200's memory bandwidth is relative to (bench/common/machine.cpp)
SIZES = {"f32": 4, "tf32": 4, "bf16": 2, "f16": 2, "i8": 1, "u8": 1, "f8e4m3": 1}
UNITS = {"f32": "f32", "tf32": "tf32", "bf16": "16-bit", "f16": "16-bit", "i8": "8-bit", "f8e4m3": "8-bit"}
WINDOW, QUERIES = 1024, 16  # of window-* and cached-*


def product(x, w, y):
    """Bytes and operations of [m,k] times [k,n], whose elements have x, w and y bytes."""
    return lambda m, n, k, copies=1: (x * m * k + w * copies * k * n + y * m * n, 2 * m * n * k)


def attention(seen):
    def work(batch, positions, heads, width, group=1, queries=None):
        rows = batch * heads * (queries or positions)
        return 4 * width * (rows + batch * heads * positions / group), 4 * rows * seen(positions) * width
    return work


def moved(read, written):
    """Bytes of an operation that reads and writes so many bytes of each element."""
    return lambda *extents: ((read + written) * math.prod(extents), 0)


# Patterns of names without a group's prefix; bytes and operations of the extents, given the size of an element; the unit of the peak, or
# None for rows that memory bounds.
WORK = (
    (r"gemm-(i8)-.*", lambda size: product(1, 1, 4), "8-bit"),
    (r"gemm-(\w+?)-.*", lambda size: product(size, size, size), None),
    (r"scaled_mm-(\w+)-.*", lambda size: product(1, 1, 2), "8-bit"),
    (r"(?:linear_gelu|grouped_mm)-(\w+)-.*", lambda size: product(2, 2, 2), "16-bit"),
    (r"(?:linear_cast|linear_norm)-(\w+)-.*", lambda size: product(4, 2, 2), "16-bit"),
    (r"linear_i8-(\w+)-.*", lambda size: product(2, 1, 2), "16-bit"),
    (r"linear_i4-(\w+)-.*", lambda size: product(2, 0.5, 2), "16-bit"),
    (r"attention-(\w+)-.*-window", lambda size: attention(lambda n: min(WINDOW, n / 2)), "16-bit"),
    (r"attention-(\w+)-.*-full", lambda size: attention(lambda n: n), "16-bit"),
    (r"attention-(\w+)-.*-(?:causal|gqa|packed)", lambda size: attention(lambda n: n / 2), "16-bit"),
    (r"attention-(\w+)-.*-cached", lambda size: lambda *shape: (attention(lambda n: n)(*shape, queries=QUERIES)[0], 0), "memory"),
    (r"(?:copy|gelu|layer_norm|rms_norm|softmax|transpose|cumsum)-(\w+?)-.*", lambda size: moved(size, size), "memory"),
    (r"(?:cross_entropy|sum)-(\w+?)-.*", lambda size: lambda rows, width=0: ((size * rows * width + 4 * rows) if width else size * rows, 0), "memory"),
    (r"sort-(\w+)-.*", lambda size: moved(4, 8), "memory"),
    (r"histogram-(\w+)-.*", lambda size: moved(1, 0), "memory"),
    (r"gemv-(\w+)-.*", lambda size: lambda n, k: (size * (n * k + n), 0), "memory"),
)


def work(row, results):
    """(bytes, operations, unit) of a row; the unit is memory for a row that it bounds."""
    name = PREFIX.sub("", row["name"])
    for pattern, make, unit in WORK:
        if found := re.fullmatch(pattern, name):
            extents = [int(extent) for extent in re.search(r"-(\d+(?:x\d+)*)(?:-|$)", name)[1].split("x")]
            moves, operations = make(SIZES[found[1]])(*extents)
            unit = unit or UNITS[found[1]]
            check(row, results, moves, operations, unit)
            return moves, operations, unit
    sys.exit(f"plots: scripts/figures/roofline.py does not know the bytes and operations of {row['name']}")


def check(row, results, moves, operations, unit):
    """The share in the results is that of the table."""
    name = results["machine"].split("-")[0]
    peak = COPY_OF_BENCH if unit == "memory" else PEAKS[name][unit]
    computed = (moves if unit == "memory" else operations) / (row["ours_ms"] * 1e-3) / peak
    stated = row.get("ceiling_share")
    if stated and abs(computed / stated - 1) > 0.05:  # times that were printed have four decimals
        sys.exit(f"plots: {row['name']}: {computed:.3f} of the ceiling by scripts/figures/roofline.py, {stated:.3f} in the results")


def rows(name):
    for row, results in newest_rows(name).values():
        if row["ours_ms"] and not SLOWER_PEER.fullmatch(row["name"]) and not ELSEWHERE.fullmatch(row["name"]):
            yield row, results, *work(row, results)


def copy_rate(name):
    """Bytes per second of the card's newest copy, of the faster side; None if it was not measured."""
    found = [pair for key, pair in newest_rows(name).items() if key.startswith("copy-")]
    if not found:
        return None
    row, results = found[0]
    return work(row, results)[0] / (min(row["ours_ms"], row["peer_ms"] or math.inf) * 1e-3)


def roofline_figure(name):
    found = [one for one in rows(name) if one[4] != "memory"]
    copy, peaks = copy_rate(name), PEAKS[name]
    height, left, top, bottom = 480, 62, 96, 434
    rates = [operations / row["ours_ms"] / 1e9 for row, _, _, operations, _ in found]
    low = 4 if copy else 2 ** math.floor(math.log2(min(operations / moves for _, _, moves, operations, _ in found)))
    x = Scale(low, 16384, left, WIDTH - 30)
    y = Scale(max(1, 10 ** math.floor(math.log10(min(rates)))), 3000, bottom, top)
    units = [unit for unit in peaks if any(one[4] == unit for one in found)]
    entries = [(f"matmul, {unit}", COLORS[unit]) for unit in units]
    entries += [("attention, 16-bit", YELLOW)] * any("attention" in row["name"] for row, *_ in found)
    body = legend(entries, 16, 68)
    for tick in (tick for tick in (1, 3, 10, 30, 100, 300, 1000, 3000) if tick >= y.low):
        body.append(tag("line", x1=left, x2=WIDTH - 30, y1=y(tick), y2=y(tick), stroke=LINE))
        body.append(text(str(tick), left - 8, y(tick) + 4, "end", FAINT, font_size=11))
    for power in range(round(math.log2(low)), 15):
        body.append(tag("line", x1=x(2**power), x2=x(2**power), y1=top, y2=bottom, stroke=LINE))
        body.append(text(f"{2**power:,}", x(2**power), bottom + 16, "middle", FAINT, font_size=11))
    body.append(text("operations per byte that must be moved", (left + WIDTH - 30) / 2, bottom + 36, "middle", FAINT, font_size=12))
    body.append(text("10¹² operations per second", left - 46, top - 10, fill=FAINT, font_size=11))
    for unit in units:
        peak = peaks[unit]
        begin = peak / copy if copy else low
        body.append(tag("line", x1=x(begin), x2=x(x.high), y1=y(peak / 1e12), y2=y(peak / 1e12), stroke=COLORS[unit], stroke_width=1.5))
        label = f"{unit}: {peak / 1e12:,.0f}"
        body.append(text(label, x(begin) + 26, y(peak / 1e12) - 4, fill=COLORS[unit], font_size=11))
    if copy:
        end = max(peaks[unit] for unit in units) / copy
        body.append(tag("line", x1=x(x.low), x2=x(end), y1=y(copy * x.low / 1e12), y2=y(copy * end / 1e12), stroke=RED, stroke_width=1.5))
        body.append(text(f"copy: {copy / 1e12:.2f} TB/s", x(low) + 6, y(copy * low / 1e12) + 22, fill=RED, font_size=11))
    for row, _, moves, operations, unit in found:
        color = YELLOW if "attention" in row["name"] else COLORS[unit]
        rate = operations / row["ours_ms"] / 1e9
        if rate >= y.low:
            body.append(dot(x(operations / moves), y(rate), color, 2.5 if row["name"].startswith("sweep") else 3.5))
    below = sum(rate < y.low for rate in rates)
    title = f"Roofline: {len(found)} rows of matmuls and attention" + (f"; {below} small ones are below the figure" if below else "")
    return document(WIDTH, height, title, origin([(row, results) for row, results, *_ in found]), body)


def bandwidth_figure(name):
    found = [one for one in rows(name) if one[4] == "memory"]
    lines, named = [], labels([(row, results) for row, results, *_ in found])
    for row, _, moves, _, _ in found:
        rate, peer = moves / row["ours_ms"] / 1e9, moves / row["peer_ms"] / 1e9 if row["peer_ms"] else None
        dots = [(rate, BLUE)]
        if peer:
            dots.insert(0, (peer, GREY, 4, "hollow"))
        lines.append(Line(named[row["name"]], dots, f"{rate:.2f}", joined=True))
    copy = copy_rate(name) / 1e12
    axis = Axis(0, 5, (0, 1, 2, 3, 4, 5), ((copy, RED, f"copy: {copy:.2f}"),), linear=True)
    return dot_plot("Achieved bandwidth, TB/s: bytes that must be moved over time", origin([(row, results) for row, results, *_ in found]),
                    [("", sorted(lines, key=lambda line: -line.dots[-1][0]))], axis, (("Tessera", BLUE), ("PyTorch", GREY, "hollow")), note_width=50)


def figures():
    made = {}
    for name in cards():
        kinds = {one[4] for one in rows(name)}
        if kinds - {"memory"}:
            made[f"roofline-{name}"] = roofline_figure(name)
        if "memory" in kinds:
            made[f"bandwidth-{name}"] = bandwidth_figure(name)
    return made


def best_line(name):
    """The row of each unit that reaches the largest share of its peak."""
    best = {}
    for row, _, _, operations, unit in rows(name):
        if unit != "memory":
            share = operations / (row["ours_ms"] * 1e-3) / PEAKS[name][unit]
            best[unit] = max(best.get(unit, (0, "")), (share, row["name"]))
    return "; ".join(f"{unit} {share:.0%} (`{row}`)" for unit, (share, row) in best.items())


def block():
    lines = []
    for name in cards():
        _, results = next(iter(newest_rows(name).values()))
        copy = copy_rate(name)
        measured = f"its copy moves {copy / 1e12:.2f} TB/s" if copy else "its copy was not measured, so the figure has no line of the memory"
        lines.append(wrapped(f"**{gpu(results)}**: {measured}. Largest share of the peak: {best_line(name)}.")
                     + f"\n![Roofline](figures/roofline-{name}.svg)\n")
        if copy:
            lines.append(f"![Bandwidth](figures/bandwidth-{name}.svg)\n")
    return "\n".join(lines)
