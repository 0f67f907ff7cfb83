"""Configurations: how good those of choose() and tune() are, and heat maps of all tiles."""

import functools
import html
import json
import re
import statistics

from results import RESULTS, command, gpu, wrapped
from svg import BLUE, FAINT, GREY, INK, LINE, RAMP, document, tag, text

from .charts import WIDTH, Scale

# Groups of problems in the results of bench/regret.cpp, by the beginning of their names.
GROUPS = (("matmul", ("gemm-",)), ("matmul + GELU", ("linear_gelu-",)), ("attention", ("attention-",)), ("softmax", ("softmax-",)))
# The two numbers of a configuration that a heat map shows: names, and places in the configuration.
AXES = {"matmul": ("rows m", "columns n"), "matmul + GELU": ("rows m", "columns n"), "attention": ("queries", "keys"), "softmax": ("rows", "warps")}


def regrets():
    """The newest results of bench/regret.cpp of each machine: its groups, each with the shares of choose() and of tune()."""
    paths = {path.stem.split("-", 3)[3]: path for path in sorted((RESULTS / "regret").glob("*.json"))}
    for name, path in paths.items():
        results = json.loads(path.read_text())
        groups = []
        for label, starts in GROUPS:
            rows = [row for row in results["rows"] if row["name"].startswith(starts) and "failure" not in row]
            if rows:
                groups.append((label, rows))
        yield name, results, groups


@functools.lru_cache(None)
def sweeps():
    """The newest results of all fitted tiles, launched without split-K, by card."""
    paths = {path.stem.split("-")[3]: path for path in sorted((RESULTS / "tiles").glob("*-none.json"))}
    return {name: json.loads(path.read_text()) for name, path in sorted(paths.items(), reverse=True)}


def ratios_of(name):
    """choose() over the products of a sweep: for each, the best time of the fitted tiles over that of the chosen one."""
    return [row["ratio"] for row in sweeps()[name]["rows"] if row.get("ratio")] if name in sweeps() else []


def share_panels(width, height, panels, title, subtitle):
    """For each panel (label, [(shares, color)]), the shares of the best in ascending order."""
    top, left, gap = 76, 44, 26
    wide = (width - left - 16 - gap * (len(panels) - 1)) / len(panels)
    y = Scale(0.5, 1, height - 40, top, linear=True)
    body = [text(f"{share:.2f}", left - 8, y(share) + 4, "end", FAINT) for share in (0.5, 0.75, 1.0)]
    for i, (label, curves) in enumerate(panels):
        begin = left + i * (wide + gap)
        for share in (0.5, 0.75, 1.0):
            body.append(tag("line", x1=begin, x2=begin + wide, y1=y(share), y2=y(share), stroke=LINE))
        for shares, color in curves:
            points = " ".join(f"{begin + wide * (j + 0.5) / len(shares):.1f},{y(share):.1f}" for j, share in enumerate(sorted(shares)))
            body.append(tag("polyline", points=points, fill="none", stroke=color, stroke_width=2))
        body.append(text(label, begin + wide / 2, height - 18, "middle"))
    return document(width, height, title, subtitle, body)


def regret_figure(results, groups):
    panels = [(f"{label} ({len(rows)})", [([row["chosen_share"] for row in rows], GREY), ([row["tuned_share"] for row in rows], BLUE)])
              for label, rows in groups]
    subtitle = (f"{html.escape(gpu(results))}, {results['date']}; random extents, ascending; "
                f"{tag('tspan', 'grey: choose()', fill=GREY)}, {tag('tspan', 'blue: tune()', fill=BLUE)}; below 0.5 drawn at 0.5")
    return share_panels(WIDTH, 300, panels, "Time of the best configuration over that of the one taken: 1 is the best", subtitle)


def model_figure():
    panels = [(f"{gpu(results)} ({len(ratios_of(name))})", [(ratios_of(name), GREY)]) for name, results in sweeps().items()]
    dates = ", ".join(sorted({results["date"] for results in sweeps().values()}))
    return share_panels(WIDTH, 260, panels, "choose(): time of the best of 10 tiles over that of the chosen one",
                        f"products of random extents, bf16, no split-K, {dates}, by the cost model of that date; ascending")


STEPS = (0.5, 0.7, 0.85, 0.93, 0.98)  # from one color of the ramp to the next


def cell(x, y, wide, high, step, content):
    return [tag("rect", x=x, y=y, width=wide - 1.5, height=high - 1.5, fill=RAMP[step]),
            text(content, x + wide / 2 - 0.8, y + high / 2 + 3.5, "middle", "white" if step >= 4 else INK, font_size=10.5)]


def shape_of(name):
    return tuple(map(int, re.search(r"(\d+)x(\d+)x(\d+)", name).groups()))


def shares(row):
    """The best time over that of each tile, by (m, n); of tiles that differ in k alone, the better one counts."""
    times = {tuple(map(int, tile.split("x"))): figure["ms"] for tile, figure in row["alternatives"].items()}
    best, found = min(times.values()), {}
    for (m, n, _), ms in times.items():
        found[m, n] = max(found.get((m, n), 0), best / ms)
    return found


def tiles_figure(name, shown=23):
    """All shapes, then some at equal distances in the order of their operations: a map of m x n for each."""
    results = sweeps()[name]
    rows = sorted((row for row in results["rows"] if row.get("alternatives")), key=lambda row: (2 * shape_of(row["name"])[0] * shape_of(row["name"])[1]
                  * shape_of(row["name"])[2], row["name"]))
    every = [shares(row) for row in rows]
    tiles = sorted({tile for one in every for tile in one})
    means = {tile: statistics.geometric_mean(one[tile] for one in every if tile in one) for tile in tiles}
    some = [rows[round(i * (len(rows) - 1) / (shown - 1))] for i in range(shown)]
    maps = [(f"all {len(rows)}, mean", means)] + [("x".join(map(str, shape_of(row["name"]))), shares(row)) for row in some]
    ms, ns = sorted({m for m, _ in tiles}), sorted({n for _, n in tiles})
    wide, high, left, top, across = 28, 18, 50, 112, 6
    step_x, step_y = (WIDTH - left - 8) / across, high * len(ms) + 34
    body = []
    for i, label in enumerate(("below 50", "50 to 69", "70 to 84", "85 to 92", "93 to 97", "98 to 100")):
        body += cell(16 + 66 * i, 60, 66, 18, i, label)
    for i, (label, found) in enumerate(maps):
        x0, y0 = left + step_x * (i % across), top + step_y * (i // across)
        body.append(text(label, x0, y0 - 6, font_size=11, font_weight=600 if i == 0 else 400))
        for r, m in enumerate(ms):
            if i % across == 0:
                body.append(text(str(m), x0 - 6, y0 + high * r + 13, "end", FAINT, font_size=10.5))
            for c, n in enumerate(ns):
                if (m, n) in found:
                    share = found[m, n]
                    body += cell(x0 + wide * c, y0 + high * r, wide, high, sum(share >= step for step in STEPS), f"{100 * share:.0f}")
        if i + across >= len(maps):
            for c, n in enumerate(ns):
                body.append(text(str(n), x0 + wide * c + wide / 2, y0 + high * len(ms) + 12, "middle", FAINT, font_size=10.5))
    height = top + step_y * -(-len(maps) // across) + 6
    return document(WIDTH, height, "Best time over that of each tile, percent: tiles of m rows (down) and n columns (across)",
                    html.escape(f"{gpu(results)}, {results['date']}; matmuls bf16 of m x n x k, from few operations to many; no split-K"), body)


def best_figure(results, groups):
    """How often each configuration is the best of all that were measured."""
    made, across = [], 2
    for label, rows in groups:
        counts = {}
        for row in rows:
            counts[tuple(row["best"][:2])] = counts.get(tuple(row["best"][:2]), 0) + 1
        made.append((label, len(rows), counts))
    wide, high, left, top, gap = 36, 20, 70, 116, 76
    body, y0 = [], top
    for i in range(0, len(made), across):
        line = made[i : i + across]
        for j, (label, total, counts) in enumerate(line):
            x0 = left + j * (WIDTH / 2)
            ms, ns = sorted({m for m, _ in counts}), sorted({n for _, n in counts})
            body.append(text(f"{label} ({total} problems)", x0 - 54, y0 - 30, font_weight=600))
            body.append(text(f"{AXES[label][0]} down, {AXES[label][1]} across", x0 - 54, y0 - 10, fill=FAINT, font_size=11))
            most = max(counts.values())
            for r, m in enumerate(ms):
                body.append(text(str(m), x0 - 6, y0 + high * r + 14, "end", FAINT, font_size=11))
                for c, n in enumerate(ns):
                    count = counts.get((m, n), 0)
                    body += cell(x0 + wide * c, y0 + high * r, wide, high, round(count / most * 5) if count else 0, str(count) if count else "")
            for c, n in enumerate(ns):
                body.append(text(str(n), x0 + wide * c + wide / 2, y0 + high * len(ms) + 13, "middle", FAINT, font_size=11))
        y0 += high * max(len({m for m, _ in counts}) for _, _, counts in line) + gap
    return document(WIDTH, y0 - gap + 26, "How often a configuration is the best of all that were measured",
                    html.escape(f"{gpu(results)}, {results['date']}; problems of random extents; k and blocks are merged; 0 warps: Tessera decides"), body)


def figures():
    made = {}
    for name, results, groups in regrets():
        made[f"regret-{name}"], made[f"best-{name}"] = regret_figure(results, groups), best_figure(results, groups)
    if sweeps():
        made["choose"] = model_figure()
    return made | {f"tiles-{name}": tiles_figure(name) for name in sweeps()}


def table():
    """The lines of docs/tuning.md."""
    mean = statistics.geometric_mean
    made = ["| GPU | problems of random extents | configurations | `choose`, or the default | `tune` | s of a tuning |\n", "|---|---|---|---|---|---|\n"]
    for name, results, groups in regrets():
        card = gpu(results).removeprefix("NVIDIA ")
        for label, rows in groups:
            share = lambda key: f"{mean(row[key] for row in rows):.3f}, least {min(row[key] for row in rows):.2f}"
            seconds = [row["tune_s"] for row in rows]
            most = max(row["configurations"] for row in rows)
            made.append(f"| {card} | {len(rows)} of {label} | up to {most} | {share('chosen_share')} | {share('tuned_share')} | "
                        f"{statistics.median(seconds):.1f}, at most {max(seconds):.1f} |\n")
        if ratios := ratios_of(name):
            made.append(f"| {card} | {len(ratios)} products, fitted tiles alone | 10 | {mean(ratios):.3f}, least {min(ratios):.2f} | | |\n")
        made.append(f"\n![Shares of the best time](figures/regret-{name}.svg)\n")
    return "".join(made)


def regret_block():
    lines = []
    for name, results, groups in regrets():
        rows = [row for _, of in groups for row in of]
        mean = lambda key: statistics.geometric_mean(row[key] for row in rows)
        lines.append(wrapped(
            f"{gpu(results)}, {results['date']}, {len(rows)} problems: `choose`, or the default, reaches {mean('chosen_share'):.3f} of the best "
            f"(least {min(row['chosen_share'] for row in rows):.2f}), `tune` {mean('tuned_share'):.3f} (least {min(row['tuned_share'] for row in rows):.2f}). "
            f"Command: `{command(results)}`; commit: {results['commit']}.") + f"\n![Shares of the best time](figures/regret-{name}.svg)\n")
    for name, results in sweeps().items():
        ratios = ratios_of(name)
        lines.append(wrapped(f"{gpu(results)}, {results['date']}, {len(ratios)} products: `choose` reaches {statistics.geometric_mean(ratios):.3f} of the "
                             f"best of 10 tiles (least {min(ratios):.2f}). Command: `{command(results)}`; commit: {results['commit']}."))
    if sweeps():
        lines.append("![choose over products](figures/choose.svg)\n")
    return "\n".join(lines)


def tiles_block():
    lines = [f"![Tiles on {gpu(results)}](figures/tiles-{name}.svg)\n" for name, results in sweeps().items()]
    lines += [f"![Best configurations](figures/best-{name}.svg)\n" for name, _, _ in regrets()]
    return "\n".join(lines)
