"""Generated lines of README.md, docs/tuning.md and docs/performance.md."""

from results import cards, command, complete_runs, gpu, newest_rows, wrapped

from . import forward, history, models, roofline, speed, tensors, tuning

MODULES = (speed, roofline, models, forward, tensors, history, tuning)


def figures():
    """All figures, by name."""
    return {name: figure for module in MODULES for name, figure in module.figures().items()}


def stated(name, results, form):
    """The values of a key that results state, once each."""
    values = dict.fromkeys(form.format(one[name]) for one in results if one.get(name))
    return ", ".join(values)


def sources():
    """The files that the page's rows come from, by card."""
    lines = []
    for name in cards():
        counts = {}
        for row, results in newest_rows(name).values():
            if row["ours_ms"] and not row["name"].startswith("chosen-"):
                counts[id(results)] = (results, counts.get(id(results), (results, 0))[1] + 1)
        used = sorted(counts.values(), key=lambda one: one[0]["date"])
        of = [results for results, _ in used]
        forms = (("driver", "driver {}"), ("cuda", "CUDA {}"), ("nvrtc", "NVRTC {}"), ("peer", "{}"),
                 ("clocks_mhz", "clocks of at most {0[multiprocessors]} MHz, memory {0[memory]} MHz"), ("host", "host {0[cpu]}, {0[cores]} cores"))
        facts = "; ".join(filter(None, (stated(key, of, form) for key, form in forms)))
        lines.append(wrapped(f"**{gpu(of[0])}**: {facts}.") + "\n| date | commit | rows | command |\n|---|---|--:|---|\n")
        lines += [f"| {results['date']} | `{results['commit']}` | {count} | `{command(results)}` |\n" for results, count in used]
        lines.append("\n")
    return "".join(lines)


def pages():
    """(page, name of the marks, lines between them)."""
    newest = max(complete_runs().values(), key=lambda results: results["date"])
    yield "README.md", "figures", speed.readme_line(newest) + models.readme_lines(newest)
    yield "docs/tuning.md", "figures", tuning.table()
    for module in (speed, roofline, models, forward, tensors, history):
        yield "docs/performance.md", module.__name__.removeprefix("figures."), module.block()
    for name, block in (("regret", tuning.regret_block), ("tiles", tuning.tiles_block), ("sources", sources)):
        yield "docs/performance.md", name, block()
