"""Writes the pages of the C++ reference from Doxygen's XML.

The public names of Tessera are using-declarations: `using internal::Tensor;` in tessera.hpp, tensors.hpp, tune.hpp and model.hpp. Doxygen, and the
plugins that show its pages, have no entry for such names, and would show all of tessera::internal instead. So this script reads the names from these
headers, and from the XML what they name. A public name without a docstring is an error.
"""

import re
import xml.etree.ElementTree as ET
from collections import defaultdict

# A page of each header, or of each part of it under a comment that begins so: file, title.
PAGES = {
    ("tessera.hpp", "Element types"): ("types", "Element types and concepts"),
    ("tessera.hpp", "Kernels and launches"): ("kernels", "Kernels and launches"),
    ("tessera.hpp", "The host"): ("host", "Devices, streams and tensors"),
    ("tessera.hpp", "The grid"): ("control", "Grid, control flow and reports"),
    ("tessera.hpp", "Values"): ("values", "Values"),
    ("tessera.hpp", "Memory"): ("memory", "Memory"),
    ("tensors.hpp", ""): ("tensors", "Expressions of tensors"),
    ("tune.hpp", ""): ("tuning", "Tuning"),
    ("model.hpp", ""): ("model", "Language models"),
}
# Classes whose names are not public, but whose members are: the page, the class, and how a program gets one.
UNNAMED = (
    ("kernels", "TensorView", "`In`, `Out` and `InOut` are aliases of it, and its functions return others."),
    ("memory", "TiledView", "`tiled` of a view returns one."),
)
# Folders of the declarations that belong to a header alone: functions of tiles and of tensors have the same names.
FOLDERS = {"tensors.hpp": "tessera/tensors/", "model.hpp": "tessera/model/"}


class Fault(Exception):
    pass


def public_names(include):
    """The using-declarations: page -> (header, names in their order). Names that the tables of ops and types declare are left out."""
    pages = {}
    for header in ("tessera.hpp", "tensors.hpp", "tune.hpp", "model.hpp"):
        page = PAGES.get((header, ""), (None,))[0]
        for statement in re.finditer(r"^// (?P<comment>.*)|^using (?P<names>internal::[^;]*);", (include / "tessera" / header).read_text(), re.M):
            if statement["comment"]:
                begins = [place for (of, begin), (place, _) in PAGES.items() if of == header and begin and statement["comment"].startswith(begin)]
                page = begins[0] if begins else page
                continue
            if page is None:
                raise Fault(f"include/tessera/{header}: a using-declaration has no comment above it that tools/site/reference.py knows")
            pages.setdefault(page, (header, []))[1].extend(re.findall(r"internal::(\w+)", statement["names"]))
    return pages


def escaped(text):
    return re.sub(r"([\\`*_<\[\]])", r"\\\1", text)


def inline(element):
    """A paragraph of Doxygen as Markdown."""
    made = escaped(element.text or "")
    for child in element:
        if child.tag == "computeroutput":
            made += f"`{''.join(child.itertext())}`"
        elif child.tag in ("emphasis", "bold"):
            raise Fault(f"a docstring emphasizes '{''.join(child.itertext())}': write code with underscores or stars in backticks")
        elif child.tag == "ref":
            made += inline(child)
        elif child.tag == "ulink":
            made += f"[{inline(child)}]({child.get('url')})"
        elif child.tag in ("itemizedlist", "orderedlist"):
            made += "\n\n" + "".join("- " + " ".join(inline(para) for para in item) + "\n" for item in child) + "\n"
        elif child.tag in ("verbatim", "preformatted", "programlisting"):
            made += "\n\n```cpp\n" + "".join(child.itertext()).strip("\n") + "\n```\n\n"
        elif child.tag in ("ndash", "mdash"):
            made += "-"
        else:
            raise Fault(f"tools/site/reference.py does not know Doxygen's element {child.tag}")
        made += escaped(child.tail or "")
    return made


def description(entity):
    paragraphs = [inline(para).strip() for part in ("briefdescription", "detaileddescription") for para in entity.find(part) or ()]
    return "\n\n".join(filter(None, paragraphs))


def spelled(text):
    """C++ as this project formats it."""
    text = re.sub(r"\b(tessera::)?internal::", "", text)
    text = re.sub(r",? ?Location location ?= ?Location::current\(\)", "", text)  # tells errors where the call is; nobody passes it
    text = re.sub(r"\s*<\s(?=[^=])", "<", re.sub(r"(?<![=<>-])\s>(?!=)", ">", text))
    text = re.sub(r" ([&*]+)(?=[,)>\s]|$)", r"\1", text)
    text = re.sub(r" ([&*]+)(?=\w)", r"\1 ", text)
    return re.sub(r"([\w ])=(?=[\w{])", lambda found: found[1].rstrip() + " = ", text)


def template_line(entity):
    parameters = entity.find("templateparamlist")
    if parameters is None:
        return ""
    made = []
    for parameter in parameters:
        text = "".join(parameter.find("type").itertext())
        if parameter.find("declname") is not None:
            text += " " + parameter.find("declname").text
        if parameter.find("defval") is not None:
            text += " = " + "".join(parameter.find("defval").itertext())
        made.append(text)
    return spelled(f"template <{', '.join(made)}>\n")


def signature(member):
    text = lambda name: "".join(member.find(name).itertext()) if member.find(name) is not None else ""
    static = "static " if member.get("static") == "yes" else ""
    explicit = "explicit " if member.get("explicit") == "yes" else ""
    if member.get("kind") == "typedef":
        return template_line(member) + spelled(f"using {text('name')} = {text('type')};")
    return template_line(member) + spelled(f"{static}{explicit}{text('type')} {text('name')}{text('argsstring')}{' ' if text('initializer') else ''}"
                                           f"{text('initializer')};".strip())


class Reference:
    def __init__(self, xml, include):
        self.include, self.compounds, self.members, self.faults = include, defaultdict(list), defaultdict(list), []
        for file in sorted(xml.glob("*.xml")):
            for compound in ET.parse(file).getroot().findall("compounddef"):
                name = compound.find("compoundname").text
                if compound.get("kind") in ("class", "struct", "concept"):
                    self.compounds[re.sub(r"\s*<.*", "", name)].append(compound)
                elif name == "tessera::internal":
                    for member in compound.iter("memberdef"):
                        self.members[member.find("name").text].append(member)
        self.sources = {}

    def lines(self, entity, begin, end):
        file = entity.find("location").get("file")
        if file not in self.sources:
            self.sources[file] = (self.include / file).read_text().split("\n")
        return self.sources[file][begin - 1 : end]

    def body(self, entity):
        """The lines of an entity in its header, without blank ones at the ends, from its template line on."""
        place = entity.find("location")
        begin, end = int(place.get("line")), int(place.get("bodyend") or -1)
        while self.lines(entity, begin - 1, begin - 1)[0].startswith("template "):
            begin -= 1
        end = max(end, int(place.get("line")))
        while not re.search(r"[;}]\s*(//.*)?$", self.lines(entity, end, end)[0]):  # a declaration of several lines
            end += 1
        return re.sub(r"///<? ?", "// ", "\n".join(self.lines(entity, begin, end)))

    def refuses(self, member):
        """Whether an overload exists only for its error message."""
        return "static_assert(" in (text := self.body(member)) and '"tessera: ' in text

    def declared(self, entity):
        place = entity.find("location")
        return f"Declared in [{place.get('file')}](../../include/{place.get('file')}), line {place.get('line')}.\n\n"

    def overloads(self, title, members, level, required=True):
        """A section of functions of one name; those that have a docstring, or one of them if none has."""
        shown = [member for member in members if description(member)]
        if not shown:
            if required:
                place = members[0].find("location")
                self.faults.append(f"include/{place.get('file')}:{place.get('line')}: {title} has no docstring")
            shown = [member for member in members if not self.refuses(member)][:1] or members[:1]
        made = f"{'#' * level} {escaped(title)}\n\n"
        for member in shown:
            made += f"```cpp\n{signature(member)}\n```\n\n{description(member)}\n\n"
        return made + (self.declared(shown[0]) if level == 2 else "")

    def type(self, title, compound, note=""):
        """A struct of data as its source; a class by its public members."""
        told = description(compound)
        if not (told or note):
            self.faults.append(f"include/{compound.find('location').get('file')}: {title} has no docstring")
        made = f"## {title}\n\n"
        sections = [section for section in compound.findall("sectiondef") if section.get("kind").startswith("public") or section.get("kind") == "friend"]
        members = [member for section in sections for member in section.findall("memberdef")]
        members = [member for member in members if member.get("kind") != "friend" or member.find("argsstring").text]  # no friend that is a class
        members.sort(key=lambda member: int(member.find("location").get("line")))
        if compound.get("kind") == "concept" or (compound.get("kind") == "struct" and not any(member.get("kind") == "function" for member in members)):
            return made + f"{told}\n\n```cpp\n{self.body(compound)}\n```\n\n{self.declared(compound)}"
        made += f"```cpp\n{template_line(compound)}{compound.get('kind')} {title};\n```\n\n{note or told}\n\n{self.declared(compound)}"
        named, others, data = defaultdict(list), [], []
        for member in members:
            if member.get("kind") == "variable":
                told = " ".join("".join(member.find(part).itertext()).strip() for part in ("briefdescription", "detaileddescription")).strip()
                data.append(signature(member) + (f"  // {' '.join(told.split())}" if told else ""))
            else:
                named[member.find("name").text].append(member)
        if data:
            made += "```cpp\n" + "\n".join(data) + "\n```\n\n"
        for name, group in named.items():
            if any(description(member) for member in group):
                made += self.overloads(f"{title}::{name}", group, 3)
            elif not name.startswith("~") and name != title and name != "operator=":
                others += [signature(member) for member in group if not self.refuses(member)]
        if others:
            made += "Other members:\n\n```cpp\n" + "\n".join(others) + "\n```\n\n"
        return made

    def entry(self, name, header, tiles):
        """The section of a public name; tiles: names that have sections for tiles."""

        def here(entity):
            file = entity.find("location").get("file")
            return file.startswith(FOLDERS[header]) if header in FOLDERS else not file.startswith(tuple(FOLDERS.values()))

        compounds = self.compounds[f"tessera::internal::{name}"]
        found = [compound for compound in compounds if here(compound)] or compounds
        if found:
            return self.type(name, max(found, key=lambda compound: bool(description(compound))))
        members = [member for member in self.members[name] if here(member)]
        if not members:
            self.faults.append(f"include/tessera/{header}: Doxygen has no {name}")
            return ""
        if members[0].get("kind") in ("enum", "variable"):
            if not description(members[0]):
                self.faults.append(f"include/{members[0].find('location').get('file')}: {name} has no docstring")
            return f"## {name}\n\n{description(members[0])}\n\n```cpp\n{self.body(members[0])}\n```\n\n{self.declared(members[0])}"
        if name in tiles and not any(description(member) for member in members):
            return f"## {name}\n\n" + "".join(f"```cpp\n{signature(members[0])}\n```\n\n") + \
                f"As [{escaped(name)}]({tiles[name]}.md#{name}) of tiles.\n\n{self.declared(members[0])}"
        return self.overloads(name, members, 2)


def types_table(include):
    lines = re.findall(r"^(?:NARROW_FLOAT|TYPE)\((.*)\)$", (include / "tessera/graph/types.def").read_text(), re.M)
    yes = {"true": "yes", "false": ""}
    return "| type | bytes | kind | has arithmetic | of tensors | operand of `mma` |\n|---|--:|---|---|---|---|\n" + "".join(
        f"| `{name}` | {size} | {kind} | {yes[computes]} | {yes[stored]} | {yes[multiplies]} |\n"
        for name, size, kind, _, computes, stored, multiplies, _ in (re.split(r",\s*", line) for line in lines)) + "\n"


def c_page(include):
    """The header of the C API explains itself: its parts as sections."""
    text = (include / "tessera/tessera_c.h").read_text()
    first, *parts = re.split(r"^/\* (\w.*?) -{5,} \*/$", text, flags=re.M)
    made = f"# C\n\nThe header [tessera/tessera_c.h](../../include/tessera/tessera_c.h), part by part.\n\n```c\n{first.strip()}\n```\n\n"
    for title, part in zip(parts[::2], parts[1::2]):
        made += f"## {title}\n\n```c\n{part.strip()}\n```\n\n"
    return made


def pages(xml, include):
    """The pages: name -> Markdown; raises Fault for what cannot be made. Links are relative to docs/reference of the repository."""
    reference = Reference(xml, include)
    titles = dict(PAGES.values())
    made, index = {}, []
    public = public_names(include)
    tiles = {name: page for page, (header, names) in public.items() if header == "tessera.hpp" for name in names}
    for page, (header, names) in public.items():
        includes = f"`#include <tessera/{header}>`. All names are in the namespace `tessera`.\n\n"
        made[page] = f"# {titles[page]}\n\n{includes}" + (types_table(include) if page == "types" else "")
        for name in sorted(set(names), key=str.lower):
            made[page] += reference.entry(name, header, tiles if header == "tensors.hpp" else {})
            index.append((name, page))
        for of, name, note in UNNAMED:
            if of == page:
                made[page] += reference.type(name, reference.compounds[f"tessera::internal::{name}"][0], note)
    made["c"] = c_page(include)
    if reference.faults:
        raise Fault("\n".join(reference.faults))
    index.sort(key=lambda entry: (entry[0].lower(), entry[1]))
    listed = "".join(f"| [{escaped(name)}]({page}.md#{name.lower()}) | {titles[page]} |\n" for name, page in index)
    made["index"] = f"""# C++ reference

Every public name, with its docstring. Functions of ops, such as `exp` and `sum`, are in [the reference of ops](../ops.md), which is made from their table.
A last parameter `Location location`, which tells errors where the call is, is left out.

| name | page |
|---|---|
{listed}"""
    return made
