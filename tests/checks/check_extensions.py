#!/usr/bin/env python3
"""Applies the sample extensions to copies of the files that they change: check_extensions.py ROOT.

Each tests/extensions/*.patch must apply without fuzz, and change no more files of src and include than its first line allows.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def applies(root, patch, files):
    """What `patch` complains about, or ""."""
    with tempfile.TemporaryDirectory() as copy:
        for name in files:
            if (root / name).is_file():
                (Path(copy) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / name, Path(copy) / name)
        run = subprocess.run(["patch", "-p1", "--fuzz=0", "--force", "-i", patch], cwd=copy, capture_output=True, text=True)
        return "" if run.returncode == 0 else run.stdout + run.stderr


def main():
    root = Path(sys.argv[1]).resolve()
    faults = []
    print(f"{'extension':16} {'files':>5} {'limit':>5}")
    for patch in sorted((root / "tests/extensions").glob("*.patch")):
        text = patch.read_text()
        limit = re.match(r"# at most (\d+) files of src and include\n", text)
        files = sorted(set(re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", text, re.M)))
        count = sum(name.startswith(("src/", "include/")) for name in files)
        print(f"{patch.stem:16} {count:5} {limit[1] if limit else '':>5}")
        if not limit:
            faults.append(f"{patch.name}: the first line must state a limit")
        elif count > int(limit[1]):
            faults.append(f"{patch.name}: {count} files of src and include; the limit is {limit[1]}")
        if complaint := applies(root, patch, files):
            faults.append(f"{patch.name} does not apply:\n{complaint}")
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(bool(faults))


main()
