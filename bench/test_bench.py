"""Tests of the program bench, on the CPU, with peers made up: `python3 bench/test_bench.py build/release/bin/bench`"""

import json
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
        names = {row["name"].split("-")[0] for row in figures["rows"]}
        self.assertEqual(names, {"copy", "gelu", "layer_norm", "gemm", "linear_gelu", "attention", "decode"})
        for row in figures["rows"]:
            self.assertLessEqual(KEYS, row.keys())
            self.assertGreater(row["ours_ms"], 0)
            self.assertEqual((row["peer"], row["peer_ms"], row["ratio"]), (None, None, None))
            if row["name"].startswith("decode"):
                self.assertIsNone(row["error"])
            else:
                self.assertLess(row["error"], 2e-2)
                self.assertGreater(row["ours_launched_ms"], 0)
        self.assertEqual([row["error"] for row in figures["rows"] if row["name"].startswith("copy")], [0])

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
        self.assertEqual([line["do"] for line in heard], ["prepare", "turn", "turn", "turn", "launched"] * 2)
        self.assertEqual(heard[5] | {"do": "prepare", "op": "gemm", "type": "tf32", "shape": [64, 48, 32]}, heard[5])
        self.assertEqual(heard[5]["calls"] % heard[5]["sets"], 0)

    def test_peer_without_a_way(self):
        peer = self.peer('if request.get("op") == "copy": answer(error="not today"); continue')
        self.assertIn("no peer: not today", self.bench("--small", "--peer", peer, "copy*,gelu*"))
        copy, gelu = self.figures()["rows"]
        self.assertEqual((copy["peer_failure"], copy["peer_ms"]), ("not today", None))
        self.assertGreater(copy["ours_ms"], 0)
        self.assertEqual(gelu["peer_ms"], 2.5)

    def test_peer_that_ends(self):
        peer = self.peer('if request["do"] == "turn": break')
        self.assertIn("ended without an answer", self.bench("--small", "--peer", peer, "copy*,gelu*"))
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
        self.assertIn("--repetitions", self.bench("--small", "copy*", repetitions=0, status=2))


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main()
