"""Models: decoding and prompts beside PyTorch on a GPU, and beside llama.cpp and PyTorch on a CPU."""

import html
import json
import re
import statistics

from results import RESULTS, cards, command, files, gpu, newest_rows, wrapped
from svg import BLUE, GREY, ORANGE

from .charts import Axis, Line, color_of, dot_plot, ratio_axis
from .speed import origin

MODEL = re.compile(r"(decode|prefill)-(\w+)-(\d+)x(\d+)(?:-(\w+))?")
SIZES = {None: "124M", "medium": "355M", "large": "774M", "xl": "1.5B"}
TICKS = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000)


def models(name):
    """(kind, label, row, results, tokens per second of Tessera and of PyTorch) of a card."""
    found = []
    for key, (row, results) in newest_rows(name).items():
        if (match := MODEL.fullmatch(key)) and row["ours_ms"] and row["peer_ms"]:
            kind, element, batch, length, size = match.groups()
            batch, length = int(batch), int(length)
            sequences = f"{batch} sequence{'s' if batch > 1 else ''}"
            label = f"{sequences}, {length:,} in the cache" if kind == "decode" else f"{batch} x {length:,}"
            label = f"{SIZES[size]}, {element}, {label}"
            tokens = batch * (1 if kind == "decode" else length)
            order = kind, list(SIZES).index(size), batch, length
            found.append((order, label, row, results, tokens * 1e3 / row["ours_ms"], tokens * 1e3 / row["peer_ms"]))
    return sorted(found, key=lambda one: one[0])


def decode_figure(name):
    found = models(name)
    sections = []
    for kind, heading in (("decode", "A token of each sequence"), ("prefill", "Prompts")):
        lines = [Line(label, [(theirs, GREY, 4, "hollow"), (ours, color_of(ours / theirs))], f"{ours / theirs:.2f}", joined=True)
                 for (of, *_), label, _, _, ours, theirs in found if of == kind]
        if lines:
            sections.append((heading, lines))
    speeds = [speed for _, _, _, _, *both in found for speed in both]
    low, high = max(tick for tick in (100, *TICKS) if tick <= min(speeds)), min(tick for tick in TICKS if tick >= max(speeds))
    axis = Axis(low, high, tuple(10**power for power in range(2, 8) if low <= 10**power <= high), form=",")
    names = (("Tessera", BLUE), ("Tessera, slower", ORANGE), ("PyTorch's CUDA graph", GREY, "hollow"))
    return dot_plot("GPT-2: tokens per second, and the ratio", origin([(row, results) for _, _, row, results, *_ in found]), sections, axis, names,
                    note_width=50, height_of_line=19)


CPU_PEERS = (("llama_cpp", "llama.cpp"), ("torch", "PyTorch"))


def cpu_runs():
    """The newest run beside each peer: the peer, its name, the results."""
    for peer, name in CPU_PEERS:
        paths = list((RESULTS / "cpu").glob(f"*-{peer}.json"))
        if paths:
            yield peer, name, json.loads(max(paths).read_text()), max(paths).name[:10]


def loops():
    """The newest rows beside plain loops, by the number of threads."""
    names = sorted({results["machine"] for _, results in files() if results["machine"].startswith("cpu")})
    return [(name, list(newest_rows(name).values())) for name in names]


def cpu_figure():
    sections, hosts = [], set()
    for peer, name, results, _ in cpu_runs():
        hosts.add(f"{results['threads']} cores of an {results['cpu']}")
        lines = []
        for row in results["rows"]:
            model, element, what = row["name"].split("-")
            rounds = [ours / theirs for ours, theirs in zip(row["ours"], row[peer])]
            way = f"; {row['way']}" if row.get("way") else ""
            lines.append(Line(f"{model} {element}, {'prompt' if what == 'prompt' else 'new tokens'}{way}",
                              [(ratio, GREY, 2.5) for ratio in rounds] + [(row["ratio"], color_of(row["ratio"]), 5)], f"{row['ratio']:.2f}",
                              joined=True))
        sections.append((f"Tokens per second over those of {name}", lines))
    values = [value for _, lines in sections for line in lines for value, *_ in line.dots]
    names = (("a round", GREY), ("median, Tessera is faster", BLUE), ("slower", ORANGE))
    return dot_plot("Models on a CPU: above 1, Tessera is faster", html.escape(", ".join(sorted(hosts)) + ", in turns on the same cores"), sections,
                    ratio_axis(values), names, note_width=50, height_of_line=18)


def loops_figure():
    sections = []
    for name, rows in loops():
        count = int(name.removeprefix("cpu-"))
        lines = [Line(row["name"].removeprefix("gather-"), [(row["ratio"], color_of(row["ratio"]))], f"{row['ratio']:.2f}") for row, _ in rows]
        sections.append((f"{count} thread{'s' if count > 1 else ''}", sorted(lines, key=lambda line: -line.dots[0][0])))
    _, results = loops()[0][1][0]
    values = [value for _, lines in sections for line in lines for value, *_ in line.dots]
    return dot_plot("Element-wise access by the CPU executor: time of a plain loop over Tessera's",
                    html.escape(f"{results['host']['cpu']}, {results['date']}; the loop runs on one core, g++ -O2 -march=native, in the same process"),
                    sections, ratio_axis(values), note_width=50, height_of_line=18)


def figures():
    made = {f"decode-{name}": decode_figure(name) for name in cards() if models(name)}
    return made | {"cpu-models": cpu_figure(), "cpu-loops": loops_figure()}


def readme_lines(results):
    """The README's lines about decoding and the CPU."""
    name = results["machine"].split("-")[0]
    token = newest_rows(name)["decode-bf16-1x256"][0]
    runs = {peer: {row["name"]: row for row in of["rows"]} | {"": of} for peer, _, of, _ in cpu_runs()}
    at = lambda peer, what: runs[peer][f"gpt2-f32-{what}"]
    speed = lambda what, whose: statistics.median(at("llama_cpp", what)[whose])
    return f"""- **Decoding**: GPT-2 124M, bf16, one sequence, 256 tokens in the cache: {1e3 / token['ours_ms']:,.0f} tokens/s on an \
{gpu(results).removeprefix("NVIDIA ")}; PyTorch's
  CUDA graph, in the same run, reaches {1e3 / token['peer_ms']:,.0f}.
- **CPU**: GPT-2 124M, f32, {runs['llama_cpp']['']['threads']} cores of an {runs['llama_cpp']['']['cpu']}: {speed('prompt', 'ours'):,.0f} tokens/s of a \
prompt of 128, and {speed('new', 'ours'):,.0f} new tokens/s; llama.cpp, in turns
  on the same cores, {speed('prompt', 'llama_cpp'):,.0f} and {speed('new', 'llama_cpp'):,.0f}. PyTorch, in another run, takes \
{at('torch', 'prompt')['ratio']:.1f} and {at('torch', 'new')['ratio']:.1f} times as long as Tessera.
"""


def block():
    lines = []
    for name in (name for name in cards() if models(name)):
        found = models(name)
        lines.append(f"| {gpu(found[0][3])} | Tessera, tokens/s | PyTorch, tokens/s | ratio | measured |\n|---|--:|--:|--:|---|\n")
        lines += [f"| {'a token' if of[0] == 'decode' else 'prompts'}: {label} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} | {results['date']} |\n"
                  for of, label, _, results, ours, theirs in found]
        lines.append(f"\n![Decoding and prompts](figures/decode-{name}.svg)\n\n")
    for peer, name, results, date in cpu_runs():
        slower = [f"`{row['name']}` ({row['ratio']:.2f})" for row in results["rows"] if row["ratio"] < 1]
        faster = sum(row["ratio"] > 1 for row in results["rows"])
        lines.append(wrapped(f"- Beside {name}, on {results['threads']} cores of an {results['cpu']}, {date}, commit {results['commit']} "
                             f"(`{results['command']}`): faster in {faster} of {len(results['rows'])} rows; slower: {', '.join(slower) or 'none'}."))
    for name, rows in loops():
        ratios = [row["ratio"] for row, _ in rows]
        threads = "a thread" if name == "cpu-1" else f"{name.removeprefix('cpu-')} threads"
        lines.append(wrapped(f"- Beside plain loops on one core, with {threads} (`{command(rows[0][1])}`): faster in {sum(ratio > 1 for ratio in ratios)} of "
                             f"{len(ratios)} rows; the geometric mean is {statistics.geometric_mean(ratios):.2f}. They access single elements."))
    lines.append("\n![Models on a CPU](figures/cpu-models.svg)\n\n![Plain loops](figures/cpu-loops.svg)\n")
    return "".join(lines)
