"""Kernels beside PyTorch, cuBLAS and cuDNN: the README's bars, families and rows of each card."""

import html
import math
import re
import statistics
import sys

from results import cards, complete_runs, gpu, newest_rows, wrapped
from svg import BLUE, FAINT, GREY, INK, LINE, ORANGE, PAPER, RED, document, tag, text

from .charts import WIDTH, Line, Scale, color_of, dot, dot_plot, legend, ratio_axis

# The README's bars: labels, and patterns of row names, from top to bottom. Each row of a complete run belongs to exactly one family, but
# for rows beside a way of the peer that is not its fastest.
FAMILIES = (
    ("copy, GELU", r"(gelu|copy)-.*"),
    ("layer norm", r"layer_norm-.*"),
    ("matmul bf16, f16", r"gemm-(bf16|f16)-.*"),
    ("matmul tf32, w as [n,k]", r"gemm-tf32-.*-nk"),
    ("matmul tf32, w as [k,n]", r"gemm-tf32-.*(?<!nk)"),
    ("matmul f32", r"gemm-f32-.*"),
    ("linear + GELU bf16", r"linear_gelu-.*"),
    ("linear bf16 of x in f32", r"linear_cast-.*"),
    ("layer norm + linear bf16", r"linear_norm-.*"),
    ("attention bf16, causal", r"attention-bf16-.*-causal"),
    ("attention bf16, full", r"attention-bf16-.*-full"),
    ("GPT-2 124M, a token", r"decode-bf16-1x256"),
    ("GPT-2 355M to 1.5B, a token", r"decode-bf16-1x256-.*"),
    ("GPT-2, full cache, a token", r"decode-bf16-1x1003.*"),
    ("GPT-2, 8 to 256 sequences, a token", r"decode-bf16-(?!1x).*"),
    ("GPT-2 124M, 8 x 1024 prompts", r"prefill-.*"),
)
SLOWER_PEER = re.compile(r"gelu-.*-cupy|linear_gelu-.*-(eager|lt)")

# The page's families, by topic; a row belongs to the first one that matches.
TOPICS = {
    "matmul": ("Matmuls", (
        ("bf16, f16", r"gemm-(bf16|f16)-.*"),
        ("bf16, 16 to 64 rows", r"smallm-.*"),
        ("bf16, unaligned rows", r"unaligned-.*"),
        ("grouped, bf16", r"grouped_mm-.*"),
        ("tf32, w as [n,k]", r"gemm-tf32-.*-nk"),
        ("tf32, w as [k,n]", r"gemm-tf32-.*"),
        ("f32", r"gemm-f32-.*"),
        ("linear + GELU, bf16", r"linear_gelu-.*"),
        ("linear bf16 of x in f32", r"linear_cast-.*"),
        ("layer norm + linear bf16", r"linear_norm-.*"),
        ("bf16 by mma.sync alone", r"t1-.*"),
    )),
    "8-bit": ("Matmuls of 8 and 4 bits", (
        ("i8, w as [n,k]", r"bytes-gemm-i8-.*-nk"),
        ("i8, w as [k,n]", r"bytes-gemm-i8-.*"),
        ("fp8, one scale", r"bytes-scaled_mm-.*-tensor"),
        ("fp8, one scale, fast sums", r"bytes-scaled_mm-.*-tensor_fast"),
        ("fp8, scales of rows", r"bytes-scaled_mm-.*-row"),
        ("fp8, scales of rows, fast sums", r"bytes-scaled_mm-.*-row_fast"),
        ("bf16 x i8 weights [k,n]", r"linear_i8-.*(?<!nk)"),
        ("bf16 x i8 weights [n,k]", r"linear_i8-.*-nk"),
        ("bf16 x i4 weights", r"linear_i4-.*"),
    )),
    "attention": ("Attention, bf16", (
        ("causal", r"attention-bf16-.*-causal"),
        ("full", r"attention-bf16-.*-full"),
        ("heads share keys", r"gqa-.*"),
        ("window of 1024", r"window-.*"),
        ("16 queries, long cache", r"cached-.*"),
    )),
    "memory": ("Operations bound by memory", (
        ("copy, GELU", r"(copy|gelu|rows-gelu)-.*"),
        ("layer norm, RMS norm", r"(layer_norm|rows-layer_norm|rows-rms_norm)-.*"),
        ("softmax", r"rows-softmax-.*"),
        ("cross entropy", r"rows-cross_entropy-.*"),
        ("transpose", r"rows-transpose-.*"),
        ("sum, scan", r"(rows-sum|rows-cumsum|order-cumsum)-.*"),
        ("sort, histogram", r"order-(sort|histogram)-.*"),
        ("row times matrix", r"rows-gemv-.*"),
    )),
    "sweep": ("Matmuls of random extents, bf16", (("random extents", r"sweep-.*"),)),
}
ELSEWHERE = re.compile(r"(decode|prefill|tensors|chosen|forward)-.*")  # other figures, or no peer
PREFIX = re.compile(r"^(smallm|unaligned|bytes|rows|order|gqa|window|cached|sweep|t1)-")


def readme_families(rows):
    for label, pattern in FAMILIES:
        ratios = [row["ratio"] for row in rows if row["ratio"] and re.fullmatch(pattern, row["name"])]
        if ratios:
            yield label, len(ratios), statistics.geometric_mean(ratios), min(ratios), max(ratios)


def of_fastest_peer(results):
    rows = [row for row in results["rows"] if not SLOWER_PEER.fullmatch(row["name"])]
    for row in rows:
        if sum(bool(re.fullmatch(pattern, row["name"])) for _, pattern in FAMILIES) != 1:
            sys.exit(f"plots: {row['name']} must belong to exactly one family of rows")
    return rows


def bars(results):
    """Families of a complete run. A bar is PyTorch's time divided by Tessera's, the geometric mean over a family of rows; whiskers are
    the smallest and the largest ratio."""
    width, line, left, right, top = WIDTH, 30, 220, 80, 64
    families = list(readme_families(of_fastest_peer(results)))
    most = max(family[4] for family in families) * 1.04
    bottom = top + line * len(families)
    x = lambda ratio: left + (width - left - right) * ratio / most
    body = [
        tag("line", x1=x(1), x2=x(1), y1=top - 8, y2=bottom, stroke=RED, stroke_dasharray="4 3"),
        text("equal", x(1), bottom + 16, "middle", RED),
    ]
    for i, (label, count, mean, least, largest) in enumerate(families):
        y, middle = top + line * i, top + line * i + 11
        body += [
            text(label, left - 10, middle + 5, "end"),
            tag("rect", x=left, y=y, width=x(mean) - left, height=22, rx=3, fill=BLUE if mean >= 1 else GREY),
            tag("line", x1=x(least), x2=x(largest), y1=middle, y2=middle, stroke=INK),
            tag("text", f'{mean:.2f} {tag("tspan", f"({count})", fill=FAINT)}', x=max(x(mean), x(largest)) + 8, y=middle + 5, fill=INK,
                stroke=PAPER, stroke_width=4, paint_order="stroke"),
        ]
    title = f"Time of {html.escape(results['peer'].split(',')[0])} over Tessera's: above 1, Tessera is faster"
    subtitle = f"{gpu(results)}, {results['date']}, same run, alternating; geometric mean, smallest and largest of each family (rows)"
    return document(width, bottom + 34, title, subtitle, body)


def readme_line(results):
    """The README's line about kernels."""
    ratios = [row["ratio"] for row in of_fastest_peer(results) if row["ratio"]]
    name, peer = gpu(results).removeprefix("NVIDIA "), results["peer"].split("+")[0]
    return f"""- **Kernels**: faster than {peer} with cuBLAS and cuDNN in {sum(ratio > 1 for ratio in ratios)} of {len(ratios)} benchmarks; \
the geometric-mean speedup over all of them is {statistics.geometric_mean(ratios):.2f}. Both ran on one
  {name} in the same run ([data](bench/results); [more plots, and where it is slower](docs/performance.md)).
"""


def by_family(name):
    """(topic, family, rows) of a card, each with its ratio; rows are (row, results)."""
    families = {(topic, label): [] for topic, (_, of) in TOPICS.items() for label, _ in of}
    for row, results in newest_rows(name).values():
        if not row["ratio"] or SLOWER_PEER.fullmatch(row["name"]) or ELSEWHERE.fullmatch(row["name"]):
            continue
        matches = [(topic, label) for topic, (_, of) in TOPICS.items() for label, pattern in of if re.fullmatch(pattern, row["name"])]
        if not matches:
            sys.exit(f"plots: {row['name']} belongs to no family of rows")
        families[matches[0]].append((row, results))
    return [(topic, label, rows) for (topic, label), rows in families.items() if rows]


def labels(pairs):
    """The names of rows without a group's prefix, where that leaves them distinct, and the peer if it is not PyTorch."""
    names = [PREFIX.sub("", row["name"]) for row, _ in pairs]
    other = lambda row: " (CuPy)" if "CuPy" in (row["peer"] or "") else ""
    return {row["name"]: (row["name"] if names.count(name) > 1 else name) + other(row) for name, (row, _) in zip(names, pairs)}


def span(results):
    """The dates of results, as in 2026-11-24 to 2026-11-28."""
    dates = sorted({one["date"] for one in results})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def origin(pairs):
    """The GPU, the dates and the peer of rows."""
    results = [results for _, results in pairs]
    peers = sorted({one["peer"].split("+")[0] for one in results if one["peer"]})
    return html.escape(f"{gpu(results[0])}, {span(results)}; {', '.join(peers)}, in the same run")


def families_figure(name):
    """A line of each family: a dot for each row, and a bar for the geometric mean."""
    found = by_family(name)
    sections = []
    for topic, (heading, _) in TOPICS.items():
        lines = []
        for _, label, rows in (one for one in found if one[0] == topic):
            ratios = sorted(row["ratio"] for row, _ in rows)
            mean = statistics.geometric_mean(ratios)
            dots = [(ratio, GREY, 2.5) for ratio in ratios] + [(mean, color_of(mean), 5)]
            lines.append(Line(label, dots, f"{mean:.2f} ({len(ratios)})", joined=True))
        if lines:
            sections.append((heading, lines))
    axis = ratio_axis([value for _, lines in sections for line in lines for value, *_ in line.dots])
    names = (("a row", GREY), ("geometric mean, Tessera is faster", BLUE), ("slower", ORANGE))
    return dot_plot("Time of PyTorch over Tessera's, by family: above 1, Tessera is faster",
                    origin([pair for _, _, rows in found for pair in rows]), sections, axis, names, note_width=80, height_of_line=18)


def rows_figure(name, topic):
    """All rows of a topic, sorted within each family."""
    found = [(label, rows) for of, label, rows in by_family(name) if of == topic]
    sections, named = [], labels([pair for _, rows in found for pair in rows])
    for label, rows in found:
        lines = [Line(named[row["name"]], [(row["ratio"], color_of(row["ratio"]))], f"{row['ratio']:.2f}") for row, _ in rows]
        sections.append((label, sorted(lines, key=lambda line: -line.dots[0][0])))
    axis = ratio_axis([line.dots[0][0] for _, lines in sections for line in lines])
    title = f"{TOPICS[topic][0]}: time of PyTorch over Tessera's, by row"
    return dot_plot(title, origin([pair for _, rows in found for pair in rows]), sections, axis, note_width=50)


def sweep_figure(name):
    """Ratios of matmuls of random extents over their operations."""
    rows = [pair for topic, _, rows in by_family(name) if topic == "sweep" for pair in rows]
    points = []
    for row, _ in rows:
        m, n, k = map(int, re.search(r"(\d+)x(\d+)x(\d+)", row["name"]).groups())
        points.append((2.0 * m * n * k, row["ratio"]))
    height, top = 340, 78
    ends = [10 ** math.floor(math.log10(min(points)[0])), 10 ** math.ceil(math.log10(max(points)[0]))]
    axis = ratio_axis([ratio for _, ratio in points])
    x, y = Scale(*ends, 56, WIDTH - 20), Scale(axis.low, axis.high, height - 44, top)
    body = legend((("Tessera is faster", BLUE), ("slower", ORANGE)), 16, 66)
    for tick in axis.ticks:
        body.append(tag("line", x1=56, x2=WIDTH - 20, y1=y(tick), y2=y(tick), stroke=LINE))
        body.append(text(f"{tick:g}", 48, y(tick) + 4, "end", FAINT, font_size=11))
    for power in range(round(math.log10(ends[0])), round(math.log10(ends[1])) + 1):
        body.append(tag("line", x1=x(10**power), x2=x(10**power), y1=top, y2=height - 44, stroke=LINE))
        body.append(tag("text", f'10{tag("tspan", str(power), dy=-5, font_size=9)}', x=x(10**power), y=height - 26, text_anchor="middle", fill=FAINT,
                        font_size=11))
    body.append(text("floating-point operations of the matmul", (56 + WIDTH - 20) / 2, height - 8, "middle", FAINT, font_size=12))
    body.append(tag("line", x1=56, x2=WIDTH - 20, y1=y(1), y2=y(1), stroke=RED, stroke_dasharray="4 3"))
    body += [dot(x(work), y(ratio), color_of(ratio)) for work, ratio in points]
    return document(WIDTH, height, f"{TOPICS['sweep'][0]}: time of PyTorch over Tessera's ({len(points)} rows)", origin(rows), body)


def table(name):
    """A line of each family."""
    yield "| family | rows | geometric mean | least | largest | faster in |\n|---|--:|--:|--:|--:|--:|\n"
    for topic, label, rows in by_family(name):
        ratios = [row["ratio"] for row, _ in rows]
        yield (f"| {TOPICS[topic][0]}: {label} | {len(ratios)} | {statistics.geometric_mean(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f} | "
               f"{sum(ratio > 1 for ratio in ratios)} |\n")


def figures():
    made = {f"speed-{name}": bars(results) for name, results in complete_runs().items()}
    for name in cards():
        made[f"families-{name}"] = families_figure(name)
        for topic in {topic: None for topic, _, _ in by_family(name)}:
            made[f"rows-{name}-{topic}"] = sweep_figure(name) if topic == "sweep" else rows_figure(name, topic)
    return made


def block():
    lines = []
    for name in cards():
        found = by_family(name)
        pairs = [pair for _, _, rows in found for pair in rows]
        ratios = [row["ratio"] for row, _ in pairs]
        slower = [f"{TOPICS[topic][0][0].lower()}{TOPICS[topic][0][1:]}: {label} ({mean:.2f})" for topic, label, rows in found
                  if (mean := statistics.geometric_mean(row["ratio"] for row, _ in rows)) < 0.95]
        summary = (f"Tessera is faster in {sum(ratio > 1 for ratio in ratios)} of {len(ratios)} rows; the geometric mean is "
                   f"{statistics.geometric_mean(ratios):.2f}, the median {statistics.median(ratios):.2f}. "
                   f"Slower families (mean below 0.95): {'; '.join(slower) or 'none'}.")
        lines.append(f"### {gpu(pairs[0][1])}\n\n{wrapped(summary)}\n![Speedup by family](figures/families-{name}.svg)\n\n"
                     f"<details><summary>The table, and each row</summary>\n\n{''.join(table(name))}")
        for topic in {topic: None for topic, _, _ in found}:
            lines.append(f"![{TOPICS[topic][0]}](figures/rows-{name}-{topic}.svg)\n")
        lines.append("</details>\n")
    return "\n".join(lines)
