#!/usr/bin/env python3
"""Checks the pages without building the site: check_pages.py ROOT.

1. Each page is one click away: README.md links to each page of the root folder, of docs and of docs/tutorial. Pages of docs/codegen are mechanisms of
   one part, and may be reached from the index of that folder, to which README.md links.
2. Each page is in the contents of the site (tools/site/pages.py), which is not built here.
3. Each relative link leads to a file or folder that exists, and each #anchor to a heading.
"""

import fnmatch
import os
import re
import sys
from pathlib import Path


def headings(text):
    """The anchors of a page's headings, outside of fences."""
    found, anchors = re.findall(r"^#+ (.*)", re.sub(r"^(```+).*?^\1", "", text, flags=re.M | re.S), re.M), set()
    for title in found:
        anchor = pages.slug(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title))
        anchors.add(anchor if anchor not in anchors else f"{anchor}-1")
    return anchors


def main():
    texts = {str(path.relative_to(root)): path.read_text() for path in (*root.glob("*.md"), *root.glob("docs/**/*.md"))}
    faults, links = [], {}
    for name, text in sorted(texts.items()):
        visible = pages.NO_LINKS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        links[name] = set()
        for found in pages.LINK.finditer(visible):
            target, _, anchor = found["target"].partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(name), target)) if target else name
            path = f"{path}/README.md" if f"{path}/README.md" in texts else path
            links[name].add(path)
            if not (root / path).exists():
                faults.append(f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {found['target']} does not exist")
            elif anchor and path in texts and anchor not in headings(texts[path]):
                faults.append(f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {path} has no heading for #{anchor}")
    near = links["README.md"] | {"README.md"}
    index = "docs/codegen/README.md"
    for name in sorted(texts):
        if name not in near and not (name.startswith("docs/codegen/") and index in near and name in links[index]):
            faults.append(f"{name} is not one click away from README.md: add it to the table 'Read on'" +
                          (f", or to {index}" if name.startswith("docs/codegen/") else ""))
    listed = [pattern for _, part in pages.CONTENTS for pattern in part]
    for name in sorted(texts):
        if name != "README.md" and not name.startswith("docs/codegen/") and not any(fnmatch.fnmatchcase(name, pattern) for pattern in listed):
            faults.append(f"{name} is in no part of the site's contents: add it to CONTENTS of tools/site/pages.py")
    print("\n".join(faults) or f"{len(texts)} pages are one click away from README.md, and their {sum(map(len, links.values()))} links lead somewhere")
    sys.exit(1 if faults else 0)


root = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(root / "tools/site"))
sys.dont_write_bytecode = True
import pages

main()
