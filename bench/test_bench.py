"""Tests of the program bench, on the CPU, with peers made up: `python3 bench/test_bench.py build/release/bin/bench`"""

import json
import math
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

BENCH = None
KEYS = {"name", "ours_ms", "peer", "peer_ms", "ratio", "ceiling_share", "error"}

# Speaks as common/peer.hpp has it, and writes down what it hears.
PEER = """
    import json, sys
    answer = lambda **values: print(json.dumps(values), flush=True)
    heard = open(__file__ + ".heard", "w")
    answer(name="a peer for " + sys.argv[1])
    for line in sys.stdin:
        heard.write(line)
        heard.flush()
        request = json.loads(line)
        {special}
        if request["do"] == "prepare": answer(peer="by hand")
        elif request["do"] == "turn": answer(ms=2.5)
        else: answer(ms=None)
"""


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.json = self.folder / "made" / "figures.json"

    def bench(self, *arguments, device="cpu", repetitions=3, status=0):
        pace = ["--repetitions", str(repetitions), "--pause", "0"]
        run = subprocess.run([BENCH, *arguments, *pace, "--device", device, "--json", str(self.json)],
                             capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def figures(self):
        return json.loads(self.json.read_text())

    def peer(self, special="", script=PEER):
        path = self.folder / "peer.py"
        path.write_text(textwrap.dedent(script).replace("{special}", special))
        return str(path)

    def heard(self):
        return [json.loads(line) for line in (self.folder / "peer.py.heard").read_text().splitlines()]

    def test_rows_without_peer(self):
        said = self.bench("--small", "--peer", "none", "--commit", "abc", "*-*")
        self.assertIn("no peer: --peer none was given", said)
        figures = self.figures()
        self.assertEqual((figures["machine"], figures["commit"], figures["small"]), ("cpu", "abc", True))
        self.assertIn("--commit abc", figures["command"])
        self.assertEqual(figures["host"].keys(), {"cpu", "cores"})
        self.assertGreater(figures["host"]["cores"], 0)
        self.assertTrue(figures["host"]["cpu"])
        self.assertTrue({"driver", "cuda", "clocks_mhz"}.isdisjoint(figures))  # of a GPU alone
        names = {row["name"].split("-")[0] for row in figures["rows"]}
        self.assertEqual(names, {"copy", "gelu", "layer_norm", "gemm", "linear_gelu", "linear_cast", "linear_norm", "linear_i8",
                                 "linear_i4", "grouped_mm", "attention", "decode", "prefill"})
        for row in figures["rows"]:
            self.assertLessEqual(KEYS, row.keys())
            self.assertGreater(row["ours_ms"], 0)
            self.assertEqual((row["peer"], row["peer_ms"], row["ratio"]), (None, None, None))
            if row["name"].startswith(("decode", "prefill")):
                self.assertIsNone(row["error"])
            else:
                self.assertLess(row["error"], 2e-2)
                self.assertGreater(row["ours_launched_ms"], 0)
        self.assertEqual([row["error"] for row in figures["rows"] if row["name"].startswith("copy")], [0])

    def test_list(self):
        run = subprocess.run([BENCH, "--list"], capture_output=True, text=True, timeout=60)
        names = run.stdout.split()
        count = lambda start: sum(name.startswith(start) for name in names)
        self.assertEqual((count("sweep-gemm-bf16-"), count("smallm-gemm-bf16-"), count("chosen-gemm-bf16-")), (60, 12, 12))
        self.assertEqual((count("t1-gemm-bf16-"), count("gemm-f16-"), len(names)), (2, 2, len(set(names))))
        self.assertEqual(sum(name.startswith("gemm-tf32-") and name.endswith("-nk") for name in names), 9)
        self.assertEqual([count(f"rows-{op}-") for op in ("layer_norm", "rms_norm", "softmax", "gelu", "cross_entropy", "transpose",
                                                          "sum", "cumsum", "gemv")], [6, 6, 6, 6, 2, 2, 1, 1, 3])
        self.assertEqual([count(f"order-{op}-") for op in ("sort", "histogram", "cumsum")], [1, 1, 1])
        self.assertEqual((count("copy"), count("gelu"), count("layer_norm")), (1, 2, 2))
        self.assertEqual((count("decode-bf16-"), count("forward-logits-bf16-"), count("forward-logits-tf32-")), (12, 36, 36))
        for name in ("smallm-gemm-bf16-16x2304x768", "smallm-gemm-bf16-64x6400x1600", "t1-gemm-bf16-8192x3072x768",
                     "gemm-f16-8192x8192x8192", "linear_gelu-bf16-8192x3072x768-eager", "linear_gelu-bf16-8192x3072x768-lt",
                     "linear_cast-f32-8192x3072x768", "linear_norm-f32-8192x3072x768",
                     "linear_i8-bf16-4096x4096x4096", "linear_i8-bf16-8192x3072x768-nk", "linear_i4-bf16-4096x4096x4096",
                     "gemm-bf16-8192x50304x768-nk", "gemm-tf32-4096x4096x4096", "gemm-tf32-8192x50304x768-nk", "decode-bf16-1x256",
                     "decode-bf16-1x1003-xl", "decode-bf16-256x256-xl", "forward-logits-tf32-16x256-medium"):
            self.assertIn(name, names)
        for name in names:
            if name.startswith("sweep-"):
                extents = [int(extent) for extent in name.split("-")[3].split("x")]
                self.assertTrue(all(16 <= extent <= 16384 and extent % 8 == 0 for extent in extents), name)
                self.assertLessEqual(2 * extents[0] * extents[1] * extents[2], 2e12)

    def test_groups_are_asked_for(self):
        said = self.bench("--small", "*gemm*,smallm-*,sweep-*", "--seed", "7", "--peer", self.peer())
        figures = self.figures()
        groups = [row["name"].split("-")[0] for row in figures["rows"]]
        self.assertEqual([groups.count(group) for group in ("gemm", "smallm", "sweep", "t1", "chosen")], [6, 3, 4, 0, 0])
        ratios = [row["ratio"] for row in figures["rows"] if row["name"].startswith("sweep-")]
        sweep = figures["groups"]["sweep"]
        self.assertEqual((sweep["rows"], sweep["ratios"], sweep["seed"]), (4, 4, 7))
        self.assertAlmostEqual(sweep["geometric_mean"], math.prod(ratios) ** (1 / 4))
        self.assertEqual(sweep["least"]["ratio"], min(ratios))
        self.assertIn("sweep: 4 rows of seed 7, geometric mean of 4 ratios", said)
        self.assertNotIn("seed", figures["groups"]["smallm"])
        first = [row["name"] for row in figures["rows"]]
        self.bench("--small", "sweep-*", "--seed", "8", "--peer", "none")
        self.assertTrue(set(first).isdisjoint(row["name"] for row in self.figures()["rows"]))

    def test_what_memory_bounds(self):
        self.assertIn("rows: 17 rows, no ratios", self.bench("--small", "rows-*", "--peer", "none"))
        for row in self.figures()["rows"]:
            self.assertLess(row["error"], 2e-2 if "bf16" in row["name"] and "cross" not in row["name"] else 1e-5, row["name"])
        self.bench("--small", "rows-gemv*", "--peer", self.peer())
        asked = [line["op"] for line in self.heard() if line["do"] == "prepare"]
        self.assertEqual(asked, ["gemv", "gemv", "gemv_kn"])

    def test_what_meets_across_a_line(self):
        self.assertIn("order: 3 rows, no ratios", self.bench("--small", "order-*", "--peer", "none"))
        errors = {row["name"].split("-")[1]: row["error"] for row in self.figures()["rows"]}
        self.assertEqual((errors["sort"], errors["histogram"]), (0, 0))
        self.assertLess(errors["cumsum"], 1e-5)

    def test_loops_on_the_cpu(self):
        self.assertIn("gather: 8 rows, geometric mean of 8 ratios", self.bench("--small", "gather-*"))
        figures = self.figures()
        self.assertRegex(figures["machine"], "^cpu-[0-9]+$")
        self.assertEqual(figures["peer"], "plain loops on one core")
        for row in figures["rows"]:
            self.assertGreater(row["ours_cpu_ms"] * row["peer_cpu_ms"], 0, row["name"])
            self.assertAlmostEqual(row["ratio"], row["peer_ms"] / row["ours_ms"])
        self.assertIn("give patterns of gather-* alone", self.bench("gather-*,copy*", status=2))

    def test_peer_knows_each_row(self):
        names = subprocess.run([BENCH, "--list"], capture_output=True, text=True, timeout=60).stdout
        ops = re.search(r"\nOPS = {.*?\n}\n", (Path(__file__).parent / "peer.py").read_text(), re.DOTALL)[0]
        for op in {name.split("-")[1] for name in names.split() if name.startswith(("rows-", "order-"))}:
            self.assertRegex(ops, rf"\b{op}\b")

    def test_without_wgmma(self):
        self.bench("--small", "t1-*", "--peer", "none")
        (row,) = self.figures()["rows"]
        self.assertGreater(row["ours_ms"], 0)
        self.assertEqual(self.figures()["groups"]["t1"]["least"], None)

    def test_chosen(self):
        self.assertIn("chosen: 4 rows, geometric mean of 4 ratios", self.bench("--small", "chosen-*", "--peer", self.peer()))
        for row in self.figures()["rows"]:
            times = [tile["ms"] for tile in row["alternatives"].values()]
            self.assertGreater(len(times), 5)
            self.assertEqual(row["peer_ms"], min(times + [row["ours_ms"]]))
            self.assertAlmostEqual(row["ratio"], row["peer_ms"] / row["ours_ms"])
            self.assertIn("the best of", row["peer"])
        self.assertEqual(self.heard(), [])

    def test_tiles(self):
        self.bench("--small", "gemm-bf16*", "--tiles", "16,32,16", "--peer", "none")
        figures = self.figures()
        self.assertEqual(figures["tiles"], [16, 32, 16])
        for row in figures["rows"]:
            self.assertLess(row["error"], 2e-2)

    def test_programs_of_tensors(self):
        run = subprocess.run([BENCH, "--list"], capture_output=True, text=True, timeout=60)
        programs = {name.split("-")[1] for name in run.stdout.split() if name.startswith("tensors-")}
        self.assertEqual((len(programs), run.stdout.count("tensors-")), (23, 69))
        functions = (Path(__file__).parent / "peer_tensors.py").read_text()
        for program in programs:
            self.assertIn(f"def {program}(shape, dtype, device, sets)", functions)
        peer = self.peer('if request["do"] == "prepare": answer(peer="by hand", first_ms=7); continue')
        self.bench("--small", "tensors-*", "--peer", peer)
        figures = self.figures()
        self.assertEqual({row["name"].split("-")[1] for row in figures["rows"]}, programs)
        for row in figures["rows"]:
            self.assertLess(row["error"], 4e-2)
            self.assertGreater(row["ours_first_ms"], 0)
            self.assertEqual((row["peer_first_ms"], row["peer_ms"]), (7, 2.5))

    def test_peers_of_linear_gelu(self):
        self.bench("--small", "linear_gelu*", "--peer", self.peer())
        asked = [line["op"] for line in self.heard() if line["do"] == "prepare"]
        self.assertEqual(asked, ["linear_gelu", "linear_gelu_eager", "linear_gelu_lt"])

    def test_peer_knows_the_rows_of_each_expert(self):
        self.bench("--small", "grouped_mm*", "--peer", self.peer())
        (asked,) = [line["shape"] for line in self.heard() if line["do"] == "prepare"]
        self.assertEqual(asked, [4608, 40, 32, 8] + [parts * 128 for parts in (1, 6, 3, 8, 5, 2, 7, 4)])

    def test_exposed_time_of_a_layer(self):
        said = self.bench("--small", "decode-*", "--peer", self.peer())
        figures = self.figures()
        copy, *rows = figures["rows"]  # the copy is measured although nobody asked for it
        self.assertEqual(copy["name"], "copy-f32-5000")
        self.assertAlmostEqual(figures["copy_bytes_per_second"] * min(copy["ours_ms"], copy["peer_ms"]) / 1e3, 2 * 4 * 5000)
        self.assertEqual([row["name"] for row in rows], ["decode-bf16-1x8", "decode-bf16-2x8"])
        weights = 2 * (3 * 12 * 48 * 48 + 50257 * 48)
        for batch, row in enumerate(rows, 1):
            layer = row["layer"]
            self.assertEqual((layer["layers"], layer["bytes"]), (3, weights + 2 * batch * 8 * 3 * 2 * 48))
            for side in ("ours", "peer"):
                exposed = row[f"{side}_ms"] * 1e3 - layer["bytes"] / figures["copy_bytes_per_second"] * 1e6
                self.assertAlmostEqual(layer[f"{side}_us"], exposed / 3)
            self.assertIn(f"a layer beyond its bytes: {layer['ours_us']:.1f} us, the peer's {layer['peer_us']:.1f} us", said)
        asked = [(line["op"], line["shape"]) for line in self.heard() if line["do"] == "prepare"]
        self.assertEqual(asked[1:], [("decode", [batch, 8, 3, 48, 3, 50257, 1024]) for batch in (1, 2)])
        self.assertNotIn("layer", copy)

    def test_ways_of_the_peer(self):
        ways = {"eager": {"ms": 3.5}, "compiled": {"failure": "no compiler"}, "CUDA graph": {"ms": 1.5}}
        peer = self.peer(f'if request["do"] == "turn": answer(ways={ways}); continue')
        said = self.bench("--small", "forward-*", "--peer", peer)
        self.assertIn("compiled failed: no compiler", said)
        rows = self.figures()["rows"]
        self.assertEqual(len(rows), 8)
        for row in rows:
            self.assertEqual((row["peer_ms"], row["peer"]), (1.5, "CUDA graph, the best of 2 ways"))
            self.assertAlmostEqual(row["ratio"], 1.5 / row["ours_ms"])
            self.assertEqual(row["alternatives"], {"eager": {"ms": 3.5}, "CUDA graph": {"ms": 1.5},
                                                   "compiled": {"ms": None, "failure": "no compiler"}})
        asked = [line for line in self.heard() if line["do"] == "prepare"]
        self.assertEqual((asked[0]["op"], asked[0]["shape"]), ("logits_nano", [1, 4, 3, 48, 3, 50257, 1024]))
        self.assertEqual({line["type"] for line in asked}, {"bf16", "tf32"})

    def test_compare(self):
        self.bench("--small", "copy*,gelu-f32-5000", "--peer", "none")
        old = self.folder / "old.json"

        def compared(factors, **more):
            figures = self.figures() | more
            for row, factor in zip(figures["rows"], factors):
                row["ours_ms"] = factor and row["ours_ms"] * factor
            old.write_text(json.dumps(figures))
            return self.bench("--small", "*-*", "--peer", "none", "--compare", str(old))

        said = compared([1e-3, 1e3])
        self.assertRegex(said, r"slower: copy-f32-5000 takes [0-9.]+ ms, [0-9.]+ % more than the [0-9.]+ ms of .*old.json")
        self.assertNotIn("slower: gelu", said)
        self.assertIn(f"2 rows are compared with {old}; 1 are slower by more than 3 %", said)
        self.bench("--small", "copy*,gelu-f32-5000", "--peer", "none")
        self.assertIn("1 rows are compared", compared([None, 1e3]))
        self.bench("--small", "copy*,gelu-f32-5000", "--peer", "none")
        self.assertIn("no row is compared with", compared([1e-3, 1e-3], device="cuda:0 (NVIDIA H200, sm_90)"))

    def test_compare_refuses_before_it_measures(self):
        file = self.folder / "some.json"
        for content in (None, "hello", "[]", '{"rows": []}', '{"device": "cpu", "rows": [{"name": "copy"}]}'):
            if content is not None:
                file.write_text(content)
            said = self.bench("--small", "copy*", "--peer", "none", "--compare", str(file), status=2)
            self.assertIn("there is no file" if content is None else "is not a file of bench's figures", said)
            self.assertNotIn("device:", said)
            self.assertFalse(self.json.exists())

    def test_beside_the_rows(self):
        self.bench("--small", "start,launch,plan")
        figures = self.figures()
        self.assertEqual(figures["rows"], [])
        self.assertEqual(figures["launch"].keys(), {"ours_us"})
        self.assertGreater(figures["launch"]["ours_us"], 0)
        for of in ("model", "growing"):
            self.assertGreater(min(kernel["ms"] for kernel in figures["plan"][of]), 0)
        for state in ("cold", "warm"):
            self.assertEqual(figures["start"][state].keys(), {"device_ms", "first_ms", "second_ms"})

    def test_turns_with_a_peer(self):
        self.assertIn("peer: a peer for cpu", self.bench("--small", "--peer", self.peer(), "copy*,gemm-tf32*"))
        figures = self.figures()
        self.assertEqual(figures["peer"], "a peer for cpu")
        for row in figures["rows"]:
            self.assertEqual((row["peer"], row["peer_ms"], row["peer_launched_ms"]), ("by hand", 2.5, None))
            self.assertAlmostEqual(row["ratio"], 2.5 / row["ours_ms"])
        heard = self.heard()
        self.assertEqual([line["do"] for line in heard], ["prepare", "turn", "turn", "turn", "launched"] * 3)
        self.assertEqual(heard[10]["op"], "gemm_nk")
        self.assertEqual(heard[5] | {"do": "prepare", "op": "gemm", "type": "tf32", "shape": [64, 48, 32]}, heard[5])
        self.assertEqual(heard[5]["calls"] % heard[5]["sets"], 0)

    def test_peer_without_a_way(self):
        peer = self.peer('if request.get("op") == "copy": answer(error="not today"); continue')
        self.assertIn("no peer: not today", self.bench("--small", "--peer", peer, "copy*,gelu-f32-5000"))
        copy, gelu = self.figures()["rows"]
        self.assertEqual((copy["peer_failure"], copy["peer_ms"]), ("not today", None))
        self.assertGreater(copy["ours_ms"], 0)
        self.assertEqual(gelu["peer_ms"], 2.5)

    def test_peer_that_ends(self):
        peer = self.peer('if request["do"] == "turn": break')
        self.assertIn("ended without an answer", self.bench("--small", "--peer", peer, "copy*,gelu-f32-5000"))
        for row in self.figures()["rows"]:
            self.assertGreater(row["ours_ms"], 0)
            self.assertIsNone(row["ratio"])

    def test_no_peer_here(self):
        self.assertIn("no peer: no torch", self.bench("--small", "copy*", "--peer", self.peer(
            script="""print('{"error": "no torch"}', flush=True)""")))
        self.assertIn("no peer: 'python3", self.bench("--small", "copy*", "--peer", str(self.folder / "nothing.py")))
        self.assertIn("no JSON object", self.bench("--small", "copy*", "--peer", self.peer(script="print('hello')")))

    def test_refused(self):
        self.assertIn("--small", self.bench("--peer", "none", status=2))
        self.assertIn("error:", self.bench("--peer", "none", device="cuda:99", status=2))
        self.assertIn("nothing called 'gem'", self.bench("--small", "gem", status=2))
        for tiles in ("64,64", "64,64,0", "64,64,64,", "a,b,c", "64,64,2000", "64,64,64 "):
            self.assertIn(f"--tiles {tiles}: give three extents", self.bench("--small", "gemm*", "--tiles", tiles, status=2))
        for rows in ("copy*", "chosen-*"):
            self.assertIn("none of the rows is a product", self.bench("--small", rows, "--tiles", "16,16,16", status=2))
        self.assertIn("--repetitions", self.bench("--small", "copy*", repetitions=0, status=2))


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    if not Path(BENCH).exists():
        sys.exit(print(f"skipped: there is no {BENCH}; scripts/run bench builds it"))
    unittest.main()
