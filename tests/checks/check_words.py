#!/usr/bin/env python3
"""Checks the words of sources and pages: check_words.py ROOT.

1. No name that CHANGELOG.md lists as an old one (the tables of section 0.4.0) stands in sources, tests or pages.
2. Each place that docs/glossary.md names exists.
3. Sentences that begin with "Of", "What" or "Who", which put the subject last, do not become more; lower the limit where
   you fix some.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

FOLDERS = ("src", "include", "tests", "tools", "bench", "programs", "samples", "scripts", "docs", "README.md")
GENERATED = ("tests/data/", "bench/results/", "docs/kernels.md", "docs/performance.md", "docs/op-coverage.md")
LIMITS = {"README.md": 3, "bench": 23, "docs": 85, "include": 82, "programs": 23, "samples": 23, "scripts": 10, "src": 322, "tests": 249, "tools": 30}
# Ordinary words that are also names in other places of the sources.
ORDINARY = {"granule", "Acquire", "Advance", "Chain", "Clear", "Cursor", "Expect", "Get", "Home", "Others", "Put", "Release", "Ring", "Span", "Stage",
            "Tell", "Turn", "Way"}


def texts(root):
    # Without git, as in an unpacked archive, all files are looked at.
    listed = subprocess.run(["git", "-C", root, "ls-files", *FOLDERS], capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 and listed.stdout else [
        str(path.relative_to(root)) for folder in FOLDERS for path in [root / folder, *(root / folder).rglob("*")] if path.is_file()]
    for name in filter(None, names):
        if name.startswith(GENERATED) or not (root / name).is_file():
            continue
        try:
            yield name, (root / name).read_text()
        except UnicodeDecodeError:
            pass


def old_names(root):
    section = (root / "CHANGELOG.md").read_text().split("## 0.4.0", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`.*`)[^|]* \| (`.*`)[^|]*\|$", section, re.M)
    names = {old: new for left, right in rows
             for old, new in zip(re.findall(r"`(\w+)`", left), re.findall(r"`(\w+)`", right))}
    return {old: new for old, new in names.items() if old not in ORDINARY}


def main():
    root = Path(sys.argv[1]).resolve()
    faults = []
    names = old_names(root)
    if len(names) < 60:
        faults.append(f"CHANGELOG.md: {len(names)} old names were found, and there are more")
    may_name_them = ("tests/checks/check_words.py", "src/jit/options/renamed.def", "tests/jit/test_launch.cpp")
    old = re.compile(r"\b(" + "|".join(names) + r")\b")
    openings = Counter()
    for name, text in texts(root):
        top = name.split("/")[0]
        if name not in may_name_them:
            for found in old.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                faults.append(f"{name}:{line}: {found[1]} is called {names[found[1]]} now")
        begin = r"(?:^|[.!?:]\s+|\|\s*|-\s+)" if name.endswith(".md") else r"(?:(?://+<?|#)\s*|[.!?]\s+)"
        openings[top] += len(re.findall(begin + r"(?:Of|What|Who) ", text, re.M))
    for top, count in sorted(openings.items()):
        if count > LIMITS.get(top, 0):
            faults.append(f"{top}: {count} sentences begin with 'Of', 'What' or 'Who', {LIMITS.get(top, 0)} may: put the subject first")
    for place in re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]*(?:\.(?:hpp|cpp|cuh|def))?)`", (root / "docs/glossary.md").read_text()):
        if not any((root / folder / place).exists() for folder in ("", "src", "include/tessera")):
            faults.append(f"docs/glossary.md: there is no {place}")
    print("\n".join(faults) or f"{len(names)} old names are gone; {sum(openings.values())} openings are left")
    sys.exit(1 if faults else 0)


main()
