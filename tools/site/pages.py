"""Puts the pages of the site into one folder, for Sphinx.

The pages are those of the repository, in the same folders. A README.md becomes the index.md of its folder, and the first page ends with the table of
contents. Links to files that are no pages, such as sources and results, lead to a page that shows the file, or lists the folder.
"""

import os
import re

# The contents: parts, each with its pages in order. Sphinx warns of a page that is in none.
CONTENTS = (
    ("Start", ("docs/install.md", "docs/programs.md", "docs/models.md", "docs/glossary.md")),
    ("Tutorial", ("docs/tutorial/README.md", "docs/tutorial/[0-9]*.md", "docs/tutorial/compare.md")),
    ("Language", ("docs/language.md", "docs/ops.md", "docs/contracts.md")),
    ("Host", ("docs/host.md", "docs/tensors.md", "docs/environment.md")),
    ("Performance", ("docs/performance.md", "docs/speed.md", "docs/tuning.md", "docs/inspect.md", "docs/profiling.md")),
    ("Reference", ("docs/reference/README.md",)),
    ("Internals", ("docs/architecture.md", "docs/graph.md", "docs/executor.md", "docs/codegen/README.md", "docs/runtime.md", "docs/reliability.md",
                   "docs/testing.md", "docs/verification.md", "docs/notebook.md")),
    ("Project", ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
)
# Pages whose folder is listed below them.
FOLDERS = ("docs/reference", "docs/codegen")
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".def": "cpp", ".cuh": "cuda", ".h": "c", ".py": "python", ".toml": "toml", ".sh": "bash"}
DATA = (".json", ".txt", ".csv", ".svg", ".png")
# A fence, a comment or a span of code, in which nothing is a link.
NO_LINKS = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)|<!--.*?-->|(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)", re.M | re.S)
LINK = re.compile(r"(?<=\]\()(?P<target>[^)\s]+)(?=\))")


class Fault(Exception):
    pass


def slug(title):
    """The anchor of a heading, as on GitHub and its like."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def place_of(page):
    """Where a page of the repository is on the site."""
    return re.sub(r"(^|/)README\.md$", r"\1index.md", page)


def contents(page_names):
    """A hidden table of contents for each part; Furo shows them at the side of every page."""
    made = ""
    for part, patterns in CONTENTS:
        lines = [name for pattern in patterns for name in sorted(page_names) if re.fullmatch(re.escape(pattern).replace(r"\[0\-9\]\*", "[0-9].*"), name)]
        made += f"\n```{{toctree}}\n:hidden:\n:caption: {part}\n\n" + "".join(f"{place_of(line)[:-3]}\n" for line in lines) + "```\n"
    return made


def source_page(path, text):
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    suffix = os.path.splitext(path)[1]
    return f"---\norphan: true\n---\n# {path}\n\n{fence}{{code-block}} {LANGUAGES.get(suffix, 'text')}\n:linenos:\n\n{text.rstrip()}\n{fence}\n"


class Pages:
    def __init__(self, root, reference):
        """reference: the pages of docs/reference, by name."""
        self.root, self.texts, self.copies, self.faults = root, {}, {}, []
        pages = {str(path.relative_to(root)): path.read_text() for path in sorted((*root.glob("*.md"), *root.glob("docs/**/*.md")))}
        pages |= {f"docs/reference/{'README' if name == 'index' else name}.md": text for name, text in reference.items()}
        self.pages = pages
        self.waiting = []  # files and folders that pages link to
        for name, text in pages.items():
            self.texts[place_of(name)] = self.with_links(name, text) + (contents(pages) if name == "README.md" else "")
        for folder in FOLDERS:
            inside = [name for name in pages if os.path.dirname(name) == folder and not name.endswith("README.md")]
            self.texts[f"{folder}/index.md"] += "\n```{toctree}\n:hidden:\n\n" + "".join(f"{os.path.basename(name)[:-3]}\n" for name in inside) + "```\n"
        while self.waiting:
            self.add(self.waiting.pop())
        if self.faults:
            raise Fault("\n".join(self.faults))

    def add(self, path):
        """The page that shows a file or lists a folder, or the copy of a file of data."""
        place, file = self.place(path), self.root / path
        if place in self.texts or place in self.copies:
            return
        if file.is_dir():
            files = [str(inside.relative_to(self.root)) for inside in sorted(file.rglob("*")) if inside.suffix in (*LANGUAGES, *DATA)]
            listed = "".join(f"- [{name}]({os.path.relpath(self.place(name), os.path.dirname(place))})\n" for name in files)
            self.texts[place] = f"---\norphan: true\n---\n# {path}\n\n{listed}"
            self.waiting += files
        elif path.endswith(DATA):
            self.copies[place] = file
        else:
            self.texts[place] = source_page(path, file.read_text())

    def place(self, path):
        if path in self.pages:
            return place_of(path)
        if (self.root / path).is_dir():
            return place_of(f"{path}/README.md") if f"{path}/README.md" in self.pages else f"files/{path}/index.md"
        return f"files/{path}" if path.endswith(DATA) else f"files/{path}.md"

    def with_links(self, page, text):
        """The page's text, with its links as they are on the site."""
        made, end = "", 0
        for found in NO_LINKS.finditer(text):
            made += self.links(page, text, end, found.start()) + found[0]
            end = found.end()
        return made + self.links(page, text, end, len(text))

    def links(self, page, text, begin, end):
        def link(found):
            target, _, anchor = found["target"].partition("#")
            if not target or re.match(r"[a-z]+:", target):
                return found["target"]
            path = os.path.normpath(os.path.join(os.path.dirname(page), target))
            if path.startswith("..") or not (path in self.pages or (self.root / path).exists()):
                line = text.count("\n", 0, begin + found.start()) + 1
                self.faults.append(f"{page}:{line}: {found['target']} does not exist")
                return found["target"]
            if path not in self.pages:
                self.waiting.append(path)
            return os.path.relpath(self.place(path), os.path.dirname(page)) + (f"#{anchor}" if anchor else "")

        return LINK.sub(link, text[begin:end])

    def write(self, folder):
        """Writes what has changed, so that Sphinx reads only that again, and removes what is gone."""
        wanted = {folder / place: text.encode() for place, text in self.texts.items()}
        wanted |= {folder / place: file.read_bytes() for place, file in self.copies.items()}
        for path in [path for path in folder.rglob("*") if path.is_file() and path not in wanted]:
            path.unlink()
        for path, content in wanted.items():
            if not path.exists() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
