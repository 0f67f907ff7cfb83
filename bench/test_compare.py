"""Tests of scripts/compare, with made-up figures: `python3 bench/test_compare.py`"""

import csv
import importlib.machinery
import importlib.util
import itertools
import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPT = Path(__file__).resolve().parent.parent / "scripts/compare"
sys.path.insert(0, str(SCRIPT.parent))
loader = importlib.machinery.SourceFileLoader("compare", str(SCRIPT))
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
loader.exec_module(compare)


def row(kind, model, batch, length, ours=2.0, **ways):
    """A row with made-up times of ways, or the reasons why they have none."""
    figures = {way: {"ms": ms} if isinstance(ms, float) else {"ms": None, "failure": ms} for way, ms in ways.items()}
    best = min((ms for ms in ways.values() if isinstance(ms, float)), default=None)
    return {"name": f"forward-logits-{kind}-{batch}x{length}-{model}", "ours_ms": ours, "peer": None, "peer_ms": best,
            "ratio": best and ours and best / ours, "ceiling_share": None, "error": None, "alternatives": figures}


def results(rows):
    return {"machine": "made-up", "device": "cuda:0 (a <made-up> GPU, sm_0)", "date": "2000-01-01", "commit": "made up",
            "command": "bench made up", "peer": "a made-up peer", "rows": rows}


def all_rows():
    shapes = itertools.product(("bf16", "tf32"), ("nano", "small", "medium"), (1, 4, 8, 16), (64, 128, 256))
    return [row(*shape, eager=16.0, graph=4.0 if shape[0] == "bf16" else 1.0) for shape in shapes]


class Compare(unittest.TestCase):
    def made(self, rows):
        return compare.made(results(rows))

    def test_all_rows(self):
        files = self.made(all_rows() + [{"name": "copy-f32-5000", "ours_ms": 1.0}])
        self.assertEqual(set(files), {"compare.md", "compare.csv", "compare.json", "heat-bf16.svg", "heat-tf32.svg",
                                      "throughput-bf16.svg", "throughput-tf32.svg"})
        page = files["compare.md"]
        self.assertIn("| ratio to | geometric mean of 36 rows |", page)
        self.assertIn("| eager | 8.00 | 36 | 8.00 | `forward-logits-bf16-1x64-nano` |", page)
        self.assertIn("| nano | 4 | 128 | 2.0000 | 16.0000 | 4.0000 | 2.00 | 256,000 |", page)
        made = json.loads(files["compare.json"])
        means = {kind: {way: mean["geometric_mean"] for way, mean in of.items()} for kind, of in made["geometric_means"].items()}
        for kind, graph in (("bf16", 2), ("tf32", 0.5)):
            for way, mean in ((compare.BEST, graph), ("eager", 8), ("graph", graph)):
                self.assertAlmostEqual(means[kind][way], mean)
        self.assertEqual((len(made["rows"]), made["device"]), (72, "cuda:0 (a <made-up> GPU, sm_0)"))
        lines = list(csv.DictReader(files["compare.csv"].splitlines()))
        self.assertEqual((len(lines), lines[0]["graph ms"], lines[0]["ratio to graph"]), (72, "4.0", "2.0"))

    def test_geometric_mean(self):
        rows = [row("bf16", "nano", 1, 64, eager=4.0, graph=1.0), row("bf16", "nano", 1, 128, eager=16.0, graph=32.0)]
        means = json.loads(self.made(rows)["compare.json"])["geometric_means"]["bf16"]
        self.assertAlmostEqual(means["eager"]["geometric_mean"], 4)
        self.assertAlmostEqual(means["graph"]["geometric_mean"], 8**0.5)
        self.assertAlmostEqual(means[compare.BEST]["geometric_mean"], 2)  # the best of each row
        self.assertEqual((means["graph"]["least"], means["graph"]["least_row"]), (0.5, "forward-logits-bf16-1x64-nano"))

    def test_rows_without_figures(self):
        failed = row("bf16", "nano", 1, 128, ours=None, eager=4.0, graph=2.0) | {"failure": "made to fail"}
        files = self.made([row("bf16", "nano", 1, 64, eager=4.0, graph="no graphs"), failed])
        page = files["compare.md"]
        self.assertNotIn("| graph | ", page)  # no ratio, so no mean
        self.assertIn("| eager | 2.00 | 1 | 2.00 |", page)
        self.assertIn("| nano | 1 | 64 | 2.0000 | 4.0000 | - | 2.00 | 32,000 |", page)
        self.assertIn("| nano | 1 | 128 | - | 4.0000 | 2.0000 | - | - |", page)
        self.assertIn("There are no figures of graph for `forward-logits-bf16-1x64-nano`: no graphs.", page)
        self.assertIn("There are no figures of Tessera for `forward-logits-bf16-1x128-nano`: made to fail.", page)
        alone = row("bf16", "nano", 1, 64) | {"peer_failure": "no peer"}
        self.assertIn("There are no figures of PyTorch for", self.made([alone])["compare.md"])

    def test_figures(self):
        for rows in (all_rows(), all_rows()[:5], [row("bf16", "nano", 1, 64, ours=None)]):
            files = self.made(rows)
            for name in (name for name in files if name.endswith(".svg")):
                texts = ["".join(of.itertext()) for of in xml.etree.ElementTree.fromstring(files[name]).iter() if of.tag.endswith("text")]
                self.assertIn("cuda:0 (a <made-up> GPU, sm_0), 2000-01-01, commit made up", texts)
        heat = self.made(all_rows())["heat-bf16.svg"]
        self.assertEqual((heat.count(">8.00<"), heat.count(">2.00<")), (36, 72))  # eager; graph, and the best
        throughput = self.made(all_rows())["throughput-bf16.svg"]
        self.assertEqual(throughput.count("<polyline"), 9 * 3)
        self.assertIn(">2,048 k<", throughput)  # 16 prompts of 256 in 2 ms

    def test_runs_are_merged(self):
        first, second = results(all_rows()[:36]), results(all_rows()[35:]) | {"command": "bench again"}
        second["rows"][0]["ours_ms"] = 4.0
        made = compare.merged([first, second])
        self.assertEqual((len(made["rows"]), made["rows"][35]["ours_ms"]), (72, 4.0))
        self.assertEqual((made["command"], made["date"]), ("bench made up; bench again", "2000-01-01"))

    def test_shade(self):
        self.assertEqual(compare.shade(1)[0], "#ffffff")
        self.assertEqual((compare.shade(4)[0], compare.shade(100)[0], compare.shade(0.1)[0]), (compare.BLUE, compare.BLUE, compare.RED))

    def test_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file, out = Path(folder) / "figures.json", Path(folder) / "made/here"
            run = lambda: subprocess.run([sys.executable, SCRIPT, "--from", file, "--out", out], capture_output=True, text=True)
            for content in (None, "hello", "[]", '{"rows": []}', json.dumps(results([])), json.dumps(results([{"name": "copy-f32-1"}]))):
                if content is not None:
                    file.write_text(content)
                ran = run()
                self.assertEqual(ran.returncode, 1, ran.stderr)
                self.assertIn(f"{file}: no figures of forward-*", ran.stderr)
                self.assertEqual(list(out.iterdir()), [])
            file.write_text(json.dumps(results(all_rows())))
            ran = run()
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertEqual(ran.stdout.strip(), (out / "compare.md").read_text().strip())
            self.assertEqual(len(list(out.iterdir())), 7)


if __name__ == "__main__":
    unittest.main()
