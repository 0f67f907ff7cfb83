"""Forward passes of 36 small models and shapes (the rows forward-*): the heat maps of scripts/compare, if the rows were measured."""

import importlib.machinery
import importlib.util

from results import ROOT, cards, gpu, newest_rows

loader = importlib.machinery.SourceFileLoader("compare", str(ROOT / "scripts/compare"))
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
loader.exec_module(compare)


def measured(name):
    """A card's rows, with the results that they are part of, merged; and a table of each type."""
    pairs = [pair for key, pair in newest_rows(name).items() if compare.NAME.fullmatch(key)]
    results = compare.merged([results | {"rows": [row]} for row, results in pairs]) if pairs else {"rows": []}
    return results, compare.tables(results)


def figures():
    return {f"forward-{name}-{kind}": compare.heat_map(results, kind, table)
            for name in cards() for results, tables in [measured(name)] for kind, table in tables.items()}


def block():
    lines = []
    for name in cards():
        results, tables = measured(name)
        for kind, table in tables.items():
            lines.append(f"**{gpu(results)}**, {kind}, {len(table.rows)} rows.\n\n![Forward passes](figures/forward-{name}-{kind}.svg)\n")
    return "\n".join(lines) or "Forward passes of the 36 models and shapes of `scripts/compare` have no result in the repository yet.\n"
