#!/usr/bin/env python3
"""Prints one C++ file with all ```cpp blocks of Markdown pages, to be compiled. Usage: snippets.py PAGES...

A block is statements of a function, optionally after functions, which end with a `}` alone on its line. If a block
needs more code, a comment before it, which readers do not see, has it: <!-- snippet CODE -->. That code is put before
the statements; if it contains a `$`, the whole block is put in place of the `$`. An ellipsis, `...` as a line or `{ ... }`, stands
for no code."""

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"(?:^<!-- snippet (?P<code>(?:(?!-->).)*)-->\n)?^```cpp\n(?P<text>.*?)^```$", re.M | re.S)


def snippets(page):
    """Yields the includes and the rest of each block."""
    text = page.read_text()
    for number, found in enumerate(BLOCK.finditer(text), 1):
        line = text.count("\n", 0, found.start("text")) + 1
        block = re.sub(r"^ *\.\.\.$", "", found["text"], flags=re.M).replace("{ ... }", "{}")
        includes = "".join(re.findall(r"^#include.*\n", block, re.M))
        block = re.sub(r"^#include.*$", "", block, flags=re.M)
        before, place, after = (found["code"] or "").partition("$")
        functions = ""
        if not place:
            functions, statements = re.fullmatch(r"(.*^}\n|)(.*)", block, re.M | re.S).groups()
            before, after = f"void run() {{\n{before}", "}"
            if functions:
                functions, line, block = f'#line {line} "{page}"\n{functions}', line + functions.count("\n"), statements
        yield includes, (f'namespace {page.stem}_{number} {{\n{functions}{before}\n#line {line} "{page}"\n{block}{after}\n}}\n')


def main(pages):
    found = [snippet for page in pages for snippet in snippets(page)]
    if len(found) != sum(page.read_text().count("```cpp") for page in pages):
        sys.exit("snippets: a block is not closed")
    print("#include <tessera/tensors.hpp>\n#include <tessera/tune.hpp>\n" + "".join(includes for includes, _ in found) + "using namespace tessera;")
    print("".join(code for _, code in found))


main([Path(page) for page in sys.argv[1:]])
