"""Tests of scripts/plots: `python3 bench/test_plots.py`"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import results  # noqa: E402
import svg  # noqa: E402
from figures import charts, forward, history, page, roofline, speed, tuning  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 0.56  # of the font's size: the mean width of a letter


def made(name, rows, machine="h200", **more):
    return {"machine": machine, "device": f"cuda:0 (NVIDIA {machine}, sm_90)", "date": name[:10], "commit": "abc1234", "command": "bench", "peer": "PyTorch 1",
            "rows": rows} | more


def row(name, ours=1.0, peer=2.0, **more):
    return {"name": name, "ours_ms": ours, "peer_ms": peer, "ratio": peer / ours, "peer": "torch", "ceiling_share": None} | more


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.addCleanup(results.files.cache_clear)

    def newest(self, **files):
        results.files.cache_clear()
        for name, content in files.items():
            (self.folder / f"{name}.json").write_text(json.dumps(made(name, *content[:1], **(content[1] if len(content) > 1 else {}))))
        return {key: [(of["date"], [one["name"] for one in rows]) for of, rows in parts] for key, parts in results.newest(self.folder)}

    def test_newest_of_a_group(self):
        groups = {"groups": {"bytes": {"rows": 1}}}
        found = self.newest(**{"2026-01-01-h200": ([row("bytes-a-1"), row("bytes-b-1")], groups), "2026-01-02-h200-some": ([row("bytes-a-1")], groups),
                               "2026-01-03-h200-none": ([row("bytes-a-1")], groups | {"command": "TESSERA_MULTICAST=never bench"})})
        self.assertEqual(found["h200", "bytes"], [("2026-01-02", ["bytes-a-1"]), ("2026-01-01", ["bytes-b-1"])])

    def test_newest_of_files_without_groups(self):
        found = self.newest(**{"2026-01-01-h200": ([row("bytes-a-1")], {"groups": {"bytes": {"rows": 1}}}), "2026-01-02-h200-some": ([row("bytes-a-1")],)})
        self.assertEqual(found, {("h200", ""): [("2026-01-02", ["bytes-a-1"])]})

    def test_marks(self):
        text = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\n<!-- y: begin -->\n<!-- y: end -->\n"
        self.assertEqual(results.between_marks(text, "x", "new\n"), text.replace("old", "new"))
        self.assertRaises(ValueError, results.between_marks, text, "z", "")


class Rows(unittest.TestCase):
    def test_bytes_and_operations(self):
        of = lambda name, **more: roofline.work(row(name, **more), {"machine": "h200"})
        self.assertEqual(of("gemm-bf16-2x3x5-nk"), (2 * (10 + 15 + 6), 60, "16-bit"))
        self.assertEqual(of("bytes-gemm-i8-2x3x5"), (10 + 15 + 24, 60, "8-bit"))
        self.assertEqual(of("copy-f32-100"), (800, 0, "memory"))
        self.assertEqual(of("rows-cross_entropy-bf16-10x50"), (1040, 0, "memory"))
        self.assertEqual(of("attention-bf16-2x8x3x4-full"), (2 * 4 * 4 * 48, 4 * 48 * 8 * 4, "16-bit"))
        self.assertEqual(of("attention-bf16-2x8x3x4-causal")[1], 4 * 48 * 4 * 4)
        self.assertRaisesRegex(SystemExit, "does not know", of, "mystery-f32-8")
        self.assertRaisesRegex(SystemExit, "in the results", of, "copy-f32-100", ceiling_share=0.5)

    def test_every_row_has_a_family(self):
        for name in results.cards():
            self.assertTrue(speed.by_family(name))

    def test_fastest_peer(self):
        rows = [row("gelu-f32-8"), row("gelu-f32-8-cupy", 1, 20), row("linear_gelu-bf16-8x8x8-eager")]
        self.assertEqual([one["name"] for one in speed.of_fastest_peer({"rows": rows})], ["gelu-f32-8"])
        self.assertRaisesRegex(SystemExit, "exactly one family", speed.of_fastest_peer, {"rows": [row("mystery-f32-8")]})

    def test_history_has_one_card(self):
        for name in results.cards():
            runs, panels = history.history(name)
            self.assertEqual({results.card(of) for of in runs}, {name} if runs else set())
            for _, means in panels:
                self.assertGreater(len(means), 1)

    def test_tiles(self):
        alternatives = {"64x64x64": {"ms": 2.0}, "64x64x128": {"ms": 1.0}, "128x64x64": {"ms": 4.0}}
        self.assertEqual(tuning.shares({"alternatives": alternatives}), {(64, 64): 1.0, (128, 64): 0.25})

    def test_forward(self):
        rows = {f"forward-logits-bf16-{batch}x64-nano": row(f"forward-logits-bf16-{batch}x64-nano", alternatives={"eager": {"ms": 3.0}}) for batch in (1, 4)}
        usual = forward.newest_rows
        self.addCleanup(setattr, forward, "newest_rows", usual)
        forward.newest_rows = lambda name: {key: (one, made("2026-01-01", [])) for key, one in rows.items()}
        name = results.cards()[0]
        self.assertEqual(forward.figures()[f"forward-{name}-bf16"].count(">3.00<"), 4)
        self.assertIn(f"figures/forward-{name}-bf16.svg", forward.block())


class Figures(unittest.TestCase):
    def test_axis(self):
        for ratios in ((0.9, 1.1), (0.03, 7), (0.2, 20), (1.2, 1.3)):
            axis = charts.ratio_axis(ratios)
            self.assertTrue(axis.low <= min(1, *ratios) and axis.high >= max(1, *ratios), ratios)
            self.assertIn(1, axis.ticks)

    def test_text_is_within_the_figure(self):
        for name, figure in page.figures().items():
            root = xml.etree.ElementTree.fromstring(figure)
            width, height = float(root.get("width")), float(root.get("height"))
            self.assertLessEqual(width, charts.WIDTH, name)
            for one in root.iter(f"{SVG}text"):
                if one.get("transform"):
                    continue
                content, x, y = "".join(one.itertext()), float(one.get("x")), float(one.get("y"))
                long = len(content) * LETTER * float(one.get("font-size", 13))
                begin = x - long * {"start": 0, "middle": 0.5, "end": 1}[one.get("text-anchor", "start")]
                self.assertTrue(begin >= -2 and begin + long <= width + 2 and 8 <= y <= height, f"{name}: {content}")

    def test_dots_are_within_the_figure(self):
        for name, figure in page.figures().items():
            root = xml.etree.ElementTree.fromstring(figure)
            for one in root.iter(f"{SVG}circle"):
                x, y = float(one.get("cx")), float(one.get("cy"))
                self.assertTrue(0 < x < float(root.get("width")) and 50 < y < float(root.get("height")), name)

    def test_each_color_has_a_dark_one(self):
        for name, figure in page.figures().items():
            colors = set(re.findall(r'(?:fill|stroke)="([^"]*)"', figure.split("</style>")[1]))
            self.assertLessEqual(colors, {*svg.DARK, "black", "white", "none"}, name)

    def test_contrast(self):
        """Texts, and text on each step of the ramp, are readable on a light and on a dark page (WCAG: 4.5, large shapes 3)."""
        def light(color):
            parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
            linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        def contrast(a, b):
            high, low = sorted((light(a), light(b)), reverse=True)
            return (high + 0.05) / (low + 0.05)
        for dark in (False, True):
            of = lambda color: svg.DARK[color] if dark else color
            for color in (svg.INK, svg.FAINT, svg.RED, svg.BLUE):
                self.assertGreater(contrast(of(color), of(svg.PAPER)), 4.5, (color, dark))
            for color in (svg.GREY, svg.ORANGE, svg.PURPLE, svg.GREEN, svg.YELLOW):
                self.assertGreater(contrast(of(color), of(svg.PAPER)), 3, (color, dark))
            for step, color in enumerate(svg.RAMP):
                ink = "#ffffff" if step >= 4 else of(svg.INK)
                self.assertGreater(contrast(of(color), ink), 3.5, (color, dark))


class CommandLine(unittest.TestCase):
    def test_check(self):
        with tempfile.TemporaryDirectory() as folder:
            for part in ("scripts", "docs", "bench/results"):
                shutil.copytree(ROOT / part, Path(folder) / part, ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(ROOT / "README.md", folder)
            run = lambda *arguments: subprocess.run([sys.executable, f"{folder}/scripts/plots", *arguments], capture_output=True, text=True)
            self.assertEqual(run("--check").stderr, "")
            text = (Path(folder) / "docs/performance.md").read_text()
            (Path(folder) / "docs/performance.md").write_text(text.replace("geometric mean is", "geometric mean was"))
            (Path(folder) / "docs/figures/speed-h200.svg").unlink()
            self.assertIn("docs/figures/speed-h200.svg, docs/performance.md; run scripts/plots", run("--check").stderr)
            self.assertEqual(run().returncode, 0)
            self.assertEqual((Path(folder) / "docs/performance.md").read_text(), text)
            self.assertEqual(run("--check").returncode, 0)
            self.assertEqual(run("--wrong").returncode, 2)


if __name__ == "__main__":
    unittest.main()
