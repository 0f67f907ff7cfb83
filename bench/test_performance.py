"""Tests of scripts/performance: `python3 bench/test_performance.py`"""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPT = Path(__file__).resolve().parent.parent / "scripts/performance"
sys.path.insert(0, str(SCRIPT.parent))
loader = importlib.machinery.SourceFileLoader("performance", str(SCRIPT))
performance = importlib.util.module_from_spec(importlib.util.spec_from_loader("performance", loader))
loader.exec_module(performance)

ROW = {"name": "gemm-bf16-4096x4096x4096", "ours_ms": 0.4, "peer": "torch.matmul", "peer_ms": 0.2, "ratio": 0.5,
       "ceiling_share": 0.347, "error": 3.1e-3, "ours_launched_ms": 0.41, "peer_launched_ms": 0.21}
ALONE = {"name": "copy-f32-100", "ours_ms": 0.1, "peer": None, "peer_ms": None, "ratio": None, "ceiling_share": None,
         "error": None}
FAILED = ALONE | {"name": "gelu-f32-100", "ours_ms": None, "failure": "the result is wrong"}
DECODE = ALONE | {"name": "decode-bf16-1x256", "ours_ms": 0.5, "peer_ms": 0.625, "ratio": 1.25}


def results(machine, rows, **more):
    return {"machine": machine, "device": f"cuda:0 ({machine})", "date": "2026-11-21", "commit": "abc1234",
            "command": "bench", "peer": "PyTorch 2.11.0", "rows": rows} | more


class Page(unittest.TestCase):
    def page(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (Path(folder) / f"{name}.json").write_text(json.dumps(content))
            return performance.page(Path(folder))

    def test_no_figures(self):
        self.assertIn("No figures have been measured yet.", self.page())
        self.assertIn("No figures have been measured yet.", performance.page(Path("/nonexistent")))

    def test_row(self):
        page = self.page(a=results("h200", [ROW]))
        line = ("| `gemm-bf16-4096x4096x4096` | 0.4000 | 0.2000 | 0.50 | 34.7 % | 3.1e-03 | 0.4100 | 0.2100 "
                "| torch.matmul |")
        self.assertIn(line, page.splitlines())
        self.assertIn("Geometric mean of 1 ratios: 0.50; ahead in 0.", page)
        self.assertNotIn("No figures", page)

    def test_row_of_the_cpu(self):
        row = ROW | {"name": "gather-radix_pass-u32-100", "ours_cpu_ms": 0.8, "peer_cpu_ms": 0.2}
        page = self.page(a=results("cpu-2", [row], groups={"gather": {"rows": 1}}))
        self.assertIn("| `gather-radix_pass-u32-100` | 0.400 | 0.200 | 0.50 | 0.800 | 0.200 | 0.25 |", page.splitlines())

    def test_row_without_peer(self):
        page = self.page(a=results("h200", [ALONE], peer=None))
        self.assertIn("| `copy-f32-100` | 0.1000 | - | - | - | - | - | - | - |", page)
        self.assertIn("Peer: none available.", page)
        self.assertNotIn("Geometric mean of", page)

    def test_failure(self):
        self.assertIn("There are no figures for `gelu-f32-100`: the result is wrong.", self.page(a=results("h", [FAILED])))

    def test_ratios_and_tokens(self):
        page = self.page(a=results("h200", [ROW, DECODE]))
        self.assertIn("Geometric mean of 2 ratios: 0.79; ahead in 1.", page)
        self.assertIn("`decode-bf16-1x256` is 2000 tokens per second, the peer 1600.", page)

    def test_exposed_time_of_a_layer(self):
        row = DECODE | {"name": "decode-bf16-8x256-xl", "layer": {"layers": 48, "bytes": 1e9, "ours_us": 12.34, "peer_us": None}}
        sentence = "`decode-bf16-8x256-xl` is 16000 tokens per second, the peer 12800; 12.3 us a layer beyond its bytes"
        self.assertIn(f"{sentence}.", self.page(a=results("h200", [row])))
        row["layer"] |= {"peer_us": 30}
        self.assertIn(f"{sentence}, the peer 30.0.", self.page(a=results("h200", [row])))

    def test_newest_of_each_machine(self):
        files = {"2026-11-20-h200": results("h200", [FAILED]), "2026-11-21-h200": results("h200", [ROW]),
                 "2026-11-19-a100": results("a100", [ALONE]), "2026-11-22-h200": results("h200", [], small=True)}
        page = self.page(**files)
        self.assertNotIn("gelu-f32-100", page)
        self.assertEqual([line for line in page.splitlines() if line.startswith("## ")],
                         ["## a100", "## h200"])

    def test_newest_of_each_row(self):
        row = lambda name, ms: ROW | {"name": name, "ours_ms": ms}
        files = {"2026-11-19-h200": results("h200", [row("gone-f32-1", 9)]),
                 "2026-11-20-h200": results("h200", [row("copy-f32-1", 1), row("sum-f32-1", 2)]),
                 "2026-11-21-h200-sums": results("h200", [row("sum-f32-1", 3)], date="2026-12-01"),
                 "2026-11-22-h200-more": results("h200", [row("sort-f32-1", 4)], date="2026-12-02")}
        page = self.page(**files)
        names = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
        self.assertEqual(names, ["sort-f32-1", "sum-f32-1", "copy-f32-1"])
        self.assertIn("2026-12-01", page)
        self.assertEqual(page.count("## h200"), 1)

    def test_groups(self):
        sweep = [ROW | {"name": "sweep-gemm-bf16-16x32x64", "ratio": 0.5}, ROW | {"name": "sweep-gemm-bf16-24x32x64", "ratio": 2}]
        groups = {"sweep": {"rows": 2, "seed": 7}}
        files = {"2026-11-20-h200": results("h200", [ROW, sweep[0]], groups=groups),
                 "2026-11-21-h200-sweep": results("h200", sweep, groups=groups, date="2026-12-01"),
                 "2026-11-22-h200-tiles": results("h200", [FAILED], tiles=[64, 64, 64])}
        lines = self.page(**files).splitlines()
        self.assertEqual([line for line in lines if line.startswith("##")],
                         ["## h200", "### sweep"])
        of = lambda name: [line for line in lines if line.startswith(f"| `{name}`")]
        self.assertEqual([len(of(row["name"])) for row in (ROW, *sweep)], [1, 1, 1])
        self.assertEqual([line for line in lines if line.startswith("Geometric mean")],
                         ["Geometric mean of 1 ratios: 0.50; ahead in 0.", "Geometric mean of 2 ratios: 1.00; ahead in 1."])
        self.assertEqual(lines.count("The seed is 7."), 1)
        self.assertTrue(any("2026-12-01" in line for line in lines))

    def test_chosen(self):
        row = lambda extent, ratio: ROW | {"name": f"chosen-gemm-bf16-{extent}", "ratio": ratio, "peer": "64x64x64, the best of 10 tiles",
                                           "alternatives": {"64x64x64": {"ms": 0.2}}}
        page = self.page(a=results("h200", [row("16x32x64", 0.8), row("8x8x8", 1.0)], groups={"chosen": {"rows": 2}}))
        self.assertIn("### chosen", page)
        self.assertIn("The chosen tile takes 11.8% longer than the fastest, in the geometric mean of 2, and 25.0% at most, for "
                      "`chosen-gemm-bf16-16x32x64`.", page)
        self.assertNotIn("The chosen tile takes", self.page(a=results("h200", [ROW])))

    def test_circumstances(self):
        host = {"cpu": "a CPU", "cores": 16}
        page = self.page(a=results("h200", [ROW], driver="580.1", cuda="13.0", nvrtc="13.1", host=host,
                                   clocks_mhz={"multiprocessors": 1980, "memory": 3201}))
        self.assertIn("\nDriver 580.1 (CUDA 13.0); NVRTC 13.1; maximum clocks 1980 MHz, memory 3201 MHz; host a CPU, 16 cores.\n", page)
        self.assertIn("\nHost a CPU, 16 cores.\n", self.page(a=results("h200", [ROW], host=host)))

    def test_beside_rows(self):
        times = {"device_ms": 100.4, "first_ms": 40.2, "second_ms": 5}
        page = self.page(a=results("h200", [], launch={"ours_us": 2.346, "driver_us": 2.25},
                                   plan={"model": [{"name": "linear", "ms": 1.5}, {"name": "embed", "ms": 0.5}],
                                         "growing": [{"name": "ifs", "ms": 700.0}, {"name": "loops", "ms": 200.0}]},
                                   start={"cold": times | {"first_ms": 900}, "warm": times},
                                   compile=[{"name": "linear", "ms": 90.0}, {"name": "embed", "ms": 30.0}]))
        self.assertIn("takes the host 2.35 us, the driver's call alone 2.25 us", page)
        self.assertIn("takes 40 ms with compiled kernels on disk and 900 ms without", page)
        self.assertIn("takes 1.00 ms for a kernel that `inspect` lists, in the median of 2, and 1.50 ms at most", page)
        self.assertIn('ops 700 ms at most ("ifs")', page)
        self.assertIn("60 ms for a kernel that `inspect` lists, in the median of 2, and 90 ms for `linear`", page)

    def test_page_of_the_results(self):
        made = performance.page(performance.ROOT / "bench/results")
        self.assertIn("| `gemm-bf16-4096x4096x4096` |", made)

    def test_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "page.md"
            run = lambda *arguments: subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)
            self.assertEqual(run("--help").returncode, 0)
            for wrong in (["--chek"], [Path(folder) / "none", file], [SCRIPT, file], [folder, file, "more"]):
                self.assertEqual(run(*wrong).returncode, 2, wrong)
                self.assertFalse(file.exists())
            self.assertIn("is not a folder", run("none", file).stderr)
            self.assertEqual(run(folder, file).returncode, 0)
            self.assertIn("No figures", file.read_text())
            self.assertEqual(run("--check", folder, file).returncode, 0)
            file.write_text("")
            self.assertIn("run scripts/performance", run("--check", folder, file).stderr)


if __name__ == "__main__":
    unittest.main()
