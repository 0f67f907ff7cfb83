"""Tests of scripts/kernels: `python3 bench/test_kernels.py`"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "scripts/kernels"

# Says of two kernels what inspect would.
INSPECT = """#!/usr/bin/env python3
import sys
arch = sys.argv[sys.argv.index("--arch") + 1]
def stats(kernel, registers, stack, stored):
    print(f"==== {kernel}, stats ====")
    print(f"{kernel} for {arch}: 128 threads, {registers} registers, 1024 + 64 bytes of shared memory (dynamic + static), "
          f"{stack} bytes of stack, spills of {stored} bytes stored and 0 loaded, 256 bytes of workspace a block, 1600 bytes of "
          f"instructions, 5000 bytes of cubin, compiled in 12.5 ms, cache missWARNED\\n")
stats("copy", 20, 0, 0)
stats("softmax", REGISTERS, STACK, STORED)
"""


class Kernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file, self.page = Path(folder.name) / "kernels.json", Path(folder.name) / "docs/kernels.md"
        self.inspect = Path(folder.name) / "inspect"

    def kernels(self, *arguments, status=0, script=INSPECT, registers=40, stack=0, stored=0, warned=""):
        for name, value in (("REGISTERS", registers), ("STACK", stack), ("STORED", stored), ("WARNED", warned)):
            script = script.replace(name, str(value))
        self.inspect.write_text(script)
        self.inspect.chmod(0o755)
        run = subprocess.run([sys.executable, SCRIPT, "--inspect", self.inspect, *arguments, self.file],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def test_page(self):
        self.kernels()
        self.kernels("--page", self.page, script="#!/bin/sh\nexit 1\n")  # which it does not run
        lines = self.page.read_text().splitlines()
        self.assertEqual([line for line in lines if line.startswith("## ")], [f"## {arch}" for arch in ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120")])
        self.assertEqual(lines.count("| `softmax` | 128 | 40 | 1024 | 64 | 256 | 0 | 1600 | 100 |"), 6)

    def test_change_is_shown_and_no_failure(self):
        self.kernels()
        before = self.file.read_text()
        self.assertIn("no kernel's machine code", self.kernels("--check"))
        said = self.kernels("--check", registers=48)
        self.assertIn('-"softmax": {"threads": 128, "registers": 40,', said)
        self.assertIn('+"softmax": {"threads": 128, "registers": 48,', said)
        self.assertNotIn('"copy"', said)
        self.assertEqual(self.file.read_text(), before)

    def test_some_architectures(self):
        self.kernels()
        self.assertIn("no kernel's machine code", self.kernels("--check", "--archs", "sm_80,sm_120"))
        said = self.kernels("--check", "--archs", "sm_120,sm_80", registers=48)
        self.assertEqual(said.count('+"softmax": {"threads": 128, "registers": 48,'), 2)
        said = self.kernels("--check", "--archs", "sm_80", stack=8, status=1)
        self.assertEqual(said.count("bytes of stack"), 1)
        self.assertIn("choose from sm_80", self.kernels("--check", "--archs", "sm_75", status=2))
        self.assertIn("goes with --check", self.kernels("--archs", "sm_80", status=2))

    def test_local_memory_fails(self):
        self.assertIn("softmax for sm_90a has 8 bytes of stack", self.kernels("--check", stack=8, status=1))
        self.assertIn("spills of 4 bytes stored", self.kernels("--check", stored=4, status=1))
        self.assertFalse(self.file.exists())

    def test_warning_fails(self):
        said = self.kernels("--check", warned=", 1 warning", status=1)
        self.assertIn("the compiler warns of softmax for sm_86", said)
        self.assertNotIn("bytes of stack", said)

    def test_refused(self):
        self.assertIn("no NVRTC here", self.kernels("--check", status=1, script="#!/bin/sh\necho no NVRTC here >&2; exit 2"))
        self.assertIn("has no figures", self.kernels(status=1, script="#!/bin/sh\necho '==== a, stats ===='; echo what"))
        self.assertIn("says nothing of any kernel", self.kernels(status=1, script="#!/bin/sh\n"))
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    unittest.main()
