"""Results of bench, as scripts/performance and scripts/plots read them: bench/results/DATE-MACHINE[-SOME].json."""

import functools
import json
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
# Measured with a setting that a program does not have by default; TESSERA_PEER_MODE is of the peer.
SETTING = re.compile(r"\bTESSERA_(?!PEER)\w+=")


@functools.lru_cache(None)
def files(folder=RESULTS):
    """The files of a folder with their results, newest first: their names begin with the date."""
    return [(path, json.loads(path.read_text())) for path in sorted(folder.glob("*.json"), reverse=True)]


def is_usual(results):
    """Whether the results are of usual shapes, with choose()'s tiles and default settings."""
    return not (results.get("small") or results.get("tiles") or SETTING.search(results["command"]))


def card(results):
    """h200, h100 or cpu-2."""
    return results["machine"] if results["machine"].startswith("cpu") else results["machine"].split("-")[0]


def gpu(results):
    """The GPU's name: NVIDIA H200."""
    return re.search(r"[(](.*?)(,|[)]$)", results["device"])[1]


def cards():
    """The GPUs with results, the one with most rows first."""
    counts = {}
    for _, results in files():
        if not results["machine"].startswith("cpu") and is_usual(results):
            counts[card(results)] = counts.get(card(results), 0) + len(results["rows"])
    return sorted(counts, key=lambda name: (-counts[name], name))


def rows_of(results, group):
    """The rows whose names begin with the group's name; if that is empty, the rows of no group."""
    groups = results.get("groups", {})
    for row in results["rows"]:
        first = row["name"].split("-")[0]
        if group == (first if first in groups else ""):
            yield row


def newest(folder=RESULTS):
    """For each machine and group, in order of their names: the files, newest first, each with the rows that no newer file has. A file
    that is named after its machine alone has all rows of no group, and a group with a seed is measured as a whole: older files are
    ignored. So is a file measured with tiles other than choose()'s, or with another setting."""
    found, known, complete = {}, {}, set()
    for path, results in files(folder):
        if not is_usual(results):
            continue
        groups = results.get("groups", {})
        newer = frozenset(known.setdefault(results["machine"], set()))
        for group in ["", *groups]:
            key = results["machine"], group
            parts = found.setdefault(key, [])
            rows = [row for row in rows_of(results, group) if row["name"] not in newer]
            if key not in complete and (rows or not (groups or parts)):
                parts.append((results, rows))
                known[results["machine"]] |= {row["name"] for row in rows}
                if groups[group].get("seed") if group else path.stem[11:] in ("", results["machine"]):
                    complete.add(key)
    return sorted(((key, parts) for key, parts in found.items() if parts), key=lambda entry: entry[0])


@functools.lru_cache(None)
def newest_rows(name):
    """The newest result of each row of a card, by the row's name: the row, and the results that it is part of."""
    rows = {}
    for (machine, _), parts in newest():
        for results, some in parts:
            if card(results) == name:
                rows |= {row["name"]: (row, results) for row in some}
    return rows


def complete_runs():
    """The newest complete file of each GPU; a file with only some rows has a suffix in its name."""
    runs = {}
    for path, results in files():
        if re.fullmatch(r"\d{4}-\d\d-\d\d-(h\d+)", path.stem):
            runs.setdefault(card(results), results)
    return runs


def between_marks(text, name, block):
    """The page with other lines between <!-- NAME: begin --> and <!-- NAME: end -->."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    return text[: text.index(begin) + len(begin)] + block + text[text.index(end) :]


def wrapped(text):
    """A paragraph, or an item of a list, in lines of at most 160 characters."""
    return textwrap.fill(text, 160, subsequent_indent="  " if text.startswith("- ") else "", break_long_words=False, break_on_hyphens=False) + "\n"


def command(results):
    """The command that measured, without what changes no figure: files, and the commit, which results state beside."""
    return re.sub(r"\s*--(?:json|commit|peer(?= \S*peer\.py)) \S+", "", results["command"].replace(f" --commit {results['commit']}", ""))
