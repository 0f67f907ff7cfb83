"""Ratios over commits. A line has the results of one card, and each of its points the geometric mean of the same rows."""

import html
import re
import statistics

from results import card, cards, files, gpu, is_usual
from svg import BLUE, FAINT, LINE, PAPER, RED, document, tag, text

from .charts import WIDTH, Scale, dot

DECODE = "decode-bf16-{}x256"
FP8 = [f"bytes-scaled_mm-f8e4m3-{shape}-{form}" for shape in ("4096x4096x4096", "8192x8192x8192", "8192x768x3072") for form in ("tensor", "tensor_fast")]
# Panels; a file is a point if it has all rows of the panel.
PANELS = (
    ("rows of the first run, but decode", [
        "copy-f32-134217728", "gelu-f32-12582912", "layer_norm-f32-65536x1600", "layer_norm-bf16-65536x1600", "gemm-bf16-4096x4096x4096",
        "gemm-bf16-8192x2304x768", "gemm-tf32-4096x4096x4096", "gemm-f32-2048x2048x2048", "linear_gelu-bf16-8192x3072x768",
        "attention-bf16-8x1024x12x64-causal", "attention-bf16-2x4096x12x64-causal"]),
    ("matmul bf16, 4096³ and 8192x3072x768", ["gemm-bf16-4096x4096x4096", "gemm-bf16-8192x3072x768"]),
    ("matmul tf32, 4096³, w as [k,n]", ["gemm-tf32-4096x4096x4096"]),
    ("linear of x in f32, with and without norm", ["linear_cast-f32-8192x3072x768", "linear_norm-f32-8192x3072x768"]),
    ("causal attention, 4 x 4096, heads of 128", ["attention-bf16-4x4096x16x128-causal"]),
    ("matmul i8, w as [n,k]", ["bytes-gemm-i8-4096x4096x4096-nk", "bytes-gemm-i8-8192x8192x8192-nk"]),
    ("matmul fp8, one scale", FP8),
    ("GPT-2 124M, a token of 1 sequence", [DECODE.format(1)]),
    ("GPT-2 124M, a token of 8 and of 64 sequences", [DECODE.format(8), DECODE.format(64)]),
    ("GPT-2 124M, prompts of 8 x 1024", ["prefill-bf16-8x1024"]),
)
RENAMED = {"attention-bf16-8x1024x12x64": "attention-bf16-8x1024x12x64-causal", "attention-bf16-2x4096x12x64": "attention-bf16-2x4096x12x64-causal"}


def history(name):
    """The files of a card that are a point, oldest first, and the panels that have two points or more: (label, {index of a file: mean})."""
    points = []
    for path, results in reversed(files()):
        if card(results) == name and is_usual(results):
            ratios = {RENAMED.get(row["name"], row["name"]): row["ratio"] for row in results["rows"] if row["ratio"]}
            means = {label: statistics.geometric_mean(ratios[row] for row in rows) for label, rows in PANELS if all(row in ratios for row in rows)}
            points.append((results, means))
    shown = [label for label, _ in PANELS if sum(label in means for _, means in points) > 1]
    points = [(results, means) for results, means in points if any(label in means for label in shown)]
    return [results for results, _ in points], [(label, {i: means[label] for i, (_, means) in enumerate(points) if label in means}) for label in shown]


def commit(results):
    """The commit as the results state it, shortened."""
    found = re.match(r"[0-9a-f]{7,40}(-dirty)?", results["commit"])
    return (found[0][:8].rstrip("-") + ("+" if found[1] else "")) if found else "this file's"


def figure(name):
    runs, panels = history(name)
    left, right, top, high, gap = 80, WIDTH - 70, 66, 46, 44
    step = (right - left - 20) / max(1, len(runs) - 1)
    x = lambda i: left + 10 + step * i
    bottom = top + (high + gap) * len(panels)
    body = []
    for i in range(len(runs)):
        body.append(tag("line", x1=x(i), x2=x(i), y1=top, y2=bottom - 14, stroke=LINE))
    for p, (label, means) in enumerate(panels):
        y0 = top + (high + gap) * p + 26
        values = list(means.values())
        low, most = min(1, *values) / 1.06, max(1, *values) * 1.06
        y = Scale(low, most, y0 + high, y0)
        body.append(tag("line", x1=left - 38, x2=right, y1=y(1), y2=y(1), stroke=RED, stroke_dasharray="4 3"))
        body.append(text("1", left - 44, y(1) + 4, "end", RED, font_size=11))
        body.append(tag("polyline", points=" ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in means.items()), fill="none", stroke=BLUE, stroke_width=1.5))
        body += [dot(x(i), y(value), BLUE, 3.5) for i, value in means.items()]
        first, last = min(means), max(means)
        body.append(text(label, 16, y0 - 12, font_size=12, font_weight=600))
        halo = {"stroke": PAPER, "stroke_width": 4, "paint_order": "stroke", "font_size": 11}
        body.append(text(f"{means[first]:.2f}", x(first) - 7, y(means[first]) + 4, "end", FAINT, **halo))
        body.append(text(f"{means[last]:.2f}", x(last) + 8, y(means[last]) + 4, **halo))
    for i, results in enumerate(runs):
        place = f"{x(i):.1f} {bottom:.1f}"
        body.append(text(f"{results['date'][5:]} {commit(results)}", x(i) + 4, bottom, "end", FAINT, font_size=11, transform=f"rotate(-50 {place})"))
    subtitle = f"{gpu(runs[0])}; each point is a geometric mean of the same rows; +: a commit with changes"
    return document(WIDTH, int(bottom + 100), "Time of PyTorch over Tessera's, over commits", html.escape(subtitle), body)


def figures():
    return {f"history-{name}": figure(name) for name in cards() if history(name)[1]}


def block():
    lines = []
    for name in (name for name in cards() if history(name)[1]):
        runs, panels = history(name)
        lines.append(f"**{gpu(runs[0])}**, {runs[0]['date']} to {runs[-1]['date']}, {len(runs)} files.\n\n![History](figures/history-{name}.svg)\n")
    return "\n".join(lines)
