#!/usr/bin/env python3
"""Checks the words of sources and pages: check_words.py ROOT.

1. No old name of CHANGELOG.md (the tables of section 0.4.0) occurs in sources, tests or pages.
2. Each path that docs/glossary.md names exists.
3. No sentence begins with "Of", "What" or "Who", which put the subject last.
4. No private phrase is left where the field has a term.
"""

import re
import subprocess
import sys
from pathlib import Path

# Phrases of the project's first versions; docs/glossary.md has the field's terms for them.
PRIVATE = re.compile(r"\b(?:copy engine|brought ahead|bring(?:s|ing)? ahead|by roles|as (?:it|they) lies?|who(?:ever)? has|what is brought|"
                     r"matrix units|blocks? of threads)\b", re.I)
FOLDERS = ("src", "include", "tests", "tools", "bench", "programs", "samples", "scripts", "docs", "README.md")
GENERATED = ("tests/data/", "bench/results/", "docs/ops.md")
# Old names that are also ordinary words or current names elsewhere.
ORDINARY = {"granule", "Acquire", "Advance", "Chain", "Clear", "Cursor", "Expect", "Get", "Home", "Others", "Put", "Release", "Ring", "Span", "Stage",
            "Tell", "Turn", "Way", "Commit", "Wait", "Multiply", "Product", "Course", "Written", "Products"}


def texts(root):
    # Without git, as in an unpacked archive, all files are checked.
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
        faults.append(f"CHANGELOG.md: {len(names)} old names found; the tables have more")
    may_name_them = ("tests/checks/check_words.py", "src/jit/options/renamed.def", "tests/jit/test_launch.cpp")
    old = re.compile(r"\b(" + "|".join(names) + r")\b")
    for name, text in texts(root):
        if name not in may_name_them:
            for found in old.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                faults.append(f"{name}:{line}: {found[1]} is now called {names[found[1]]}")
        begin = r"(?:^|[.!?:]\s+|\|\s*|-\s+)" if name.endswith(".md") else r"(?:(?://+<?|#)\s*|[.!?]\s+)"
        for found in re.finditer(begin + r"(?:Of|What|Who) ", text, re.M):
            line = text.count("\n", 0, found.end()) + 1
            faults.append(f"{name}:{line}: the sentence begins with 'Of', 'What' or 'Who': put the subject first")
        if name != "tests/checks/check_words.py":
            for found in PRIVATE.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                faults.append(f"{name}:{line}: '{found[0]}' is not a term of the field; docs/glossary.md has them")
    for place in re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]*(?:\.(?:hpp|cpp|cuh|def))?)`", (root / "docs/glossary.md").read_text()):
        if not any((root / folder / place).exists() for folder in ("", "src", "include/tessera")):
            faults.append(f"docs/glossary.md: {place} does not exist")
    print("\n".join(faults) or f"{len(names)} old names are gone")
    sys.exit(1 if faults else 0)


main()
