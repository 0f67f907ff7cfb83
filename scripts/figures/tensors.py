"""Tensor programs beside torch.compile."""

import re
import statistics

from results import cards, gpu, newest_rows, wrapped
from svg import BLUE, GREEN, PURPLE

from .charts import Line, dot_plot, ratio_axis
from .speed import origin

NAME = re.compile(r"tensors-(\w+)-(\w+)-(\S+)")
SIZES = (("small", GREEN), ("middle", BLUE), ("large", PURPLE))


def programs(name):
    """Rows of each program from the smallest, by (program, type)."""
    found = {}
    for key, pair in newest_rows(name).items():
        if (match := NAME.fullmatch(key)) and pair[0]["ratio"]:
            found.setdefault(match.group(1, 2), []).append(pair)
    return found


def mean(pairs):
    return statistics.geometric_mean(row["ratio"] for row, _ in pairs)


def figure(name):
    found = programs(name)
    lines = []
    for (program, element), pairs in sorted(found.items(), key=lambda one: -mean(one[1])):
        dots = [(row["ratio"], color, 4) for (row, _), (_, color) in zip(pairs, SIZES)]
        lines.append(Line(f"{program}, {element}", dots, f"{mean(pairs):.2f}", joined=True))
    ratios = [value for line in lines for value, *_ in line.dots]
    return dot_plot("Tensor programs: time of PyTorch (eager or torch.compile) over Tessera's", origin([pair for pairs in found.values() for pair in pairs]),
                    [("", lines)], ratio_axis(ratios), SIZES, note_width=50, height_of_line=18)


def figures():
    return {f"tensors-{name}": figure(name) for name in cards() if programs(name)}


def block():
    lines = []
    for name in (name for name in cards() if programs(name)):
        pairs = [pair for of in programs(name).values() for pair in of]
        ratios = [row["ratio"] for row, _ in pairs]
        first = [row["peer_first_ms"] / row["ours_first_ms"] for row, _ in pairs if row.get("peer_first_ms") and row.get("ours_first_ms")]
        slow = sorted((mean(of), program) for (program, _), of in programs(name).items() if mean(of) < 0.9)
        whole = statistics.geometric_mean(ratios)
        summary = [f"On an {gpu(pairs[0][1])}, Tessera is faster in {sum(ratio > 1 for ratio in ratios)} of {len(ratios)} rows"
                   f"{', and **slower on the whole**' if whole < 1 else ''}: the geometric mean is {whole:.2f}."]
        if slow:
            summary.append(f"Programs with a mean below 0.9: {', '.join(f'{program} ({ratio:.2f})' for ratio, program in slow)}.")
        if first:
            summary.append(f"The first call, which compiles, takes PyTorch {statistics.geometric_mean(first):.1f} times as long (geometric mean).")
        lines.append(wrapped(" ".join(summary)))
        lines.append(f"\n![Tensor programs](figures/tensors-{name}.svg)\n")
    return "".join(lines)
