"""The texts that debuggers show for Tessera's types. tessera_gdb.py and tessera_lldb.py load this module.

FORMATS maps the name of a type to a function that returns its text, and one that returns its children or None. Both take an object of
the debugger, wrapped in a class with these methods; none of them calls a function of the program:

    type_name()     "tessera::internal::Tile<float, 2>", without typedefs and const
    field(name)     a member, also of a base class
    bases()         the objects of the direct base classes
    number()        of an integer, a pointer or an enumerator
    real()          of a floating-point number
    names()         of an enumerator: {number: name} of its type
    nth(i)          of a pointer: the object i places after the one that it points to
    step()          of a pointer: the size of that object
    address()
    at(address, type)  an object of a type with this name; None if the debugger does not know the type
    enumeration(type)  {number: name} of a type with this name
    read(address, n)   bytes of memory
    symbol(address)    the name of the function or table there, or ""
    traces()           the kernels being traced: objects of type Trace in the frames of this thread

A function that finds an object without sense raises an exception; describe() then says that it is not initialized.
"""

import re
import struct
from pathlib import Path

MOST_ELEMENTS = 8      # of a tensor
MOST_NODES = 10000     # of a graph whose nodes are listed; this takes five seconds
MOST_ITEMS = 10000000  # of a vector
NAMESPACE = "tessera::internal::"


class Unreadable(Exception):
    pass


def describe(value):
    """The text for an object, and whether it could be read."""
    try:
        return FORMATS[key(value.type_name())][0](value), True
    except Exception as error:  # whatever the object's memory holds, a debugger must show the next one
        return f"<not initialized, or not readable: {error}>", False


def children(value):
    """The children of an object, as pairs of a name and an object or a text; none if it cannot be read."""
    try:
        of = FORMATS[key(value.type_name())][1]
        return list(of(value)) if of and describe(value)[1] else []
    except Exception:
        return []


# --- names of types


def key(type_name):
    """The key of FORMATS: "Var::Term" for "tessera::internal::Var<float, 2>::Term"; None for other types."""
    bare, depth = "", 0
    for c in type_name:
        depth -= c == ">"
        bare += c if depth == 0 else ""
        depth += c == "<"
    bare = re.sub(r"<>?", "", bare).strip()
    name = bare[len(NAMESPACE):] if bare.startswith(NAMESPACE) else None
    return name if name in FORMATS else None


def arguments(type_name):
    """The template arguments of the last name: ["float", "2"] for "tessera::internal::Tile<float, 2>"."""
    found, depth, start = [], 0, None
    for i, c in enumerate(type_name):
        if c == "<":
            depth += 1
            if depth == 1:
                found, start = [], i + 1
        elif c in ",>" and depth == 1:
            found.append(type_name[start:i].strip())
            start = i + 1
        if c == ">":
            depth -= 1
    return found


ELEMENTS = {"float": "f32", "double": "f64", "signed char": "i8", "short": "i16", "int": "i32", "long": "i64",
            "unsigned char": "u8", "unsigned short": "u16", "unsigned int": "u32", "unsigned long": "u64"}


def element(name):
    return ELEMENTS.get(name, name.split("::")[-1])


# --- parts of the C++ library (libstdc++)


class Vector:
    def __init__(self, value):
        self.begin = value.field("_M_impl").field("_M_start")
        begin, end = self.begin.number(), value.field("_M_impl").field("_M_finish").number()
        self.size = (end - begin) // self.begin.step()
        if end < begin or (end - begin) % self.begin.step() or self.size > MOST_ITEMS or end >> 48:
            raise Unreadable(f"a std::vector from {begin:#x} to {end:#x}")
        if self.size:
            value.read(begin, 1), value.read(end - 1, 1)

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        if not 0 <= i < self.size:
            raise IndexError(f"element {i} of a std::vector of {self.size}")
        return self.begin.nth(i)


def numbers(vector):
    return [item.number() for item in Vector(vector)]


def array_item(value, i):
    """Item i of a std::array."""
    return value.field("_M_elems").nth(i)


def string(value):
    size = value.field("_M_string_length").number()
    if not 0 <= size < 1 << 20:
        raise Unreadable(f"a std::string of {size} bytes")
    return text_of(value.read(value.field("_M_dataplus").field("_M_p").number(), size) if size else b"")


def c_string(value):
    address, data = value.number(), b""
    while b"\0" not in data:
        if len(data) > 4096:
            raise Unreadable("a text without an end")
        chunk = value.read(address, min(64, 4096 - address % 4096))  # which stay in one page
        data, address = data + chunk, address + len(chunk)
    return text_of(data[:data.index(b"\0")])


def text_of(data):
    text = data.decode()
    if any(ord(c) < 32 and c not in "\n\t" for c in text):
        raise Unreadable("a text of control characters")
    return text


def optional(value):
    """The object in a std::optional, or None."""
    payload = value.field("_M_payload")
    if not boolean(payload.field("_M_engaged")):
        return None
    return payload.field("_M_payload").field("_M_value")


def boolean(value):
    if value.number() not in (0, 1):
        raise Unreadable(f"a bool with the bits {value.number():#x}")
    return value.number() == 1


def enumerator(value):
    names = value.names()
    if value.number() not in names:
        raise Unreadable(f"{value.number()} of an enumeration of {len(names)}")
    return names[value.number()]


# --- numbers


def number_text(x, kind="d"):
    """A number as fmt prints it, with as few digits as tell it from other numbers of its type."""
    if isinstance(x, (int, bool)):
        return str(x)
    if x != x or x in (float("inf"), float("-inf")):
        return str(x)
    if kind == "f":
        x = next(y for y in (float(f"{x:.{digits}g}") for digits in range(1, 10)) if to_float(y) == x)
    return re.sub(r"\.0$", "", repr(x))


def to_float(x):
    """A double rounded to a float."""
    return struct.unpack("f", struct.pack("f", x))[0] if abs(x) < 3.4028236e38 else float("inf")


def float8(bits, fraction, bias, infinity):
    sign, exponent, rest = bits >> 7, bits >> fraction & (1 << (7 - fraction)) - 1, bits & (1 << fraction) - 1
    if infinity and exponent == (1 << (7 - fraction)) - 1:
        value = float("nan") if rest else float("inf")
    elif not infinity and bits & 127 == 127:
        value = float("nan")
    elif exponent == 0:
        value = rest / 2.0**fraction * 2.0**(1 - bias)
    else:
        value = (1 + rest / 2.0**fraction) * 2.0**(exponent - bias)
    return -value if sign else value


STORED = {"f32": "f", "f64": "d", "f16": "e", "bf16": "H", "f8e4m3": "B", "f8e5m2": "B", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
          "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "pred": "?"}


def element_text(data, type):
    """An element of a tensor."""
    x, = struct.unpack(STORED[type], data)
    if type == "bf16":
        x, = struct.unpack("f", struct.pack("I", x << 16))
    elif type == "f8e4m3":
        x = float8(x, 3, 7, False)
    elif type == "f8e5m2":
        x = float8(x, 2, 15, True)
    elif type == "pred":
        return "true" if x else "false"
    return number_text(x, "f" if type in ("f32", "f16", "bf16") else "d")


def constant_text(bits, type):
    """A number as the attribute of a node encodes it."""
    if type == "f64":
        return number_text(struct.unpack("d", struct.pack("q", bits))[0])
    if type in ("f32", "f16", "bf16", "tf32", "f8e4m3", "f8e5m2"):
        return number_text(struct.unpack("f", struct.pack("I", bits & 0xffffffff))[0], "f")
    return str(bits & (1 << 64) - 1 if type == "u64" else bits)


# --- the table of ops


def read_ops():
    """{op: (attribute, role)} of ops.def, of the tree or of the install that this file is in."""
    tables = [folder / "include/tessera/graph/ops.def" for folder in Path(__file__).resolve().parents]
    table = next((path for path in tables if path.is_file()), None)
    ops = {}
    for line in table.read_text().splitlines() if table else []:
        if structural := re.match(r"STRUCTURAL\((\w+),\s*\([^)]*\),\s*(\w+),\s*(\w+)", line):
            ops[structural[1]] = structural[2], structural[3]
        elif named := re.match(r"(UNARY|BINARY|TERNARY|REDUCTION|SCAN|ATOMIC)\((\w+),", line):
            kind = {"REDUCTION": ("axis", "value"), "SCAN": ("scan", "value"), "ATOMIC": ("order", "atomic")}.get(named[1])
            ops[named[2]] = kind or ("none", "elementwise")
            if named[1] == "ATOMIC":
                ops[named[2] + "_elements"] = kind
    return ops


OPS = read_ops()


# --- graphs


def shape_numbers(value):
    rank = value.field("rank_").number()
    if not 0 <= rank <= 6:
        raise Unreadable(f"a shape of {rank} axes")
    return [array_item(value.field("extent_"), axis).number() for axis in range(rank)]


def shape_text(value):
    return f"[{','.join(map(str, shape_numbers(value)))}]"


def location_text(value):
    file, line = c_string(value.field("file")), value.field("line").number()
    if line > 1 << 24:
        raise Unreadable(f"line {line}")
    return f"{file}:{line}" if file else "nowhere"


def parameter_text(value):
    access = {"in": "In", "out": "Out", "in_out": "InOut", "scalar": "Scalar"}[enumerator(value.field("access"))]
    type = enumerator(value.field("type"))
    if access == "Scalar":
        return f"Scalar<{type}>"
    text = f"{access}<{type}, {value.field('rank').number()}>"
    return f"Optional<{text}>" if boolean(value.field("optional")) else text


def continues_list(parameters, i):
    return i > 0 and parameters[i].field("list").number() > 0 and \
        parameters[i - 1].field("list").number() == parameters[i].field("list").number() + 1


def parameters_text(vector):
    parameters, texts = Vector(vector), []
    for i in range(len(parameters)):
        if continues_list(parameters, i):
            continue
        text, tensors = parameter_text(parameters[i]), parameters[i].field("list").number() - 1
        texts.append(f"List<{text}, {tensors}>" if tensors > 0 else text)
    return ", ".join(texts)


def escaped(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\x0a").replace("\t", "\\x09")


def attribute_text(node, op, type, graph):
    """As in the text of a graph: " {1}", or nothing. Some attributes are texts of the graph, if that is known."""
    kind, attr = OPS.get(op, ("", ""))[0], numbers(node.field("attr"))
    if kind == "none" or not attr:
        return ""
    if kind == "number":
        return f" {{{constant_text(attr[0], type)}}}"
    if kind == "stepped":
        return f" {{{attr[0]},by {attr[1]}}}" if attr[1] != 1 else f" {{{attr[0]}}}"
    if kind == "scan":
        return f" {{{attr[0]}{',reverse' if attr[1] & 1 else ''}{',exclusive' if attr[1] & 2 else ''}}}"
    if kind == "sorted":
        return f" {{{attr[0]}{',descending' if attr[1] else ''}}}"
    if kind == "order":
        order, scope = ("relaxed", "acquire", "release", "acq_rel")[attr[0]], ("block", "device", "system")[attr[1]]
        return "" if (order, scope) == ("relaxed", "device") else f" {{{order},{scope}}}"
    if kind == "parameter" and graph:
        parameters = Vector(graph.field("parameters"))
        return f" {{{sum(not continues_list(parameters, i) for i in range(1, attr[0] + 1))}}}"
    if kind == "region" and graph:
        unroll = Vector(graph.field("regions"))[attr[0]].field("unroll").number()
        return f" {{unroll {unroll}}}" if unroll else ""
    if kind == "function" and graph:
        function = Vector(graph.field("functions"))[attr[0]]
        return f' {string(function.field("name"))} "{escaped(string(function.field("expression")))}"'
    if kind == "text" and graph:
        return f' "{escaped(string(Vector(graph.field("texts"))[attr[0]]))}"'
    return f" {{{','.join(map(str, attr))}}}"


def node_text(node, graph=None, name="#{}".format):
    """A line of a graph's text, with the author's line. #17 is a node's place in Graph::nodes, %16 its number in the text."""
    op, type = enumerator(node.field("op")), enumerator(node.field("type"))
    role = OPS.get(op, ("", "value"))[1]
    operands = "".join(" " + name(i) for i in numbers(node.field("in")))
    text = op + operands + attribute_text(node, op, type, graph)
    if role == "view":
        text += f" : {type}"
    elif role not in ("write", "region", "claim", "report"):
        text += f" : {type}{shape_text(node.field('shape'))}"
    return f"{text}   // {location_text(node.field('location'))}"


class Nodes:
    """The nodes of a graph in the order of its text: schedule() of src/graph/schedule.cpp."""

    def __init__(self, graph):
        self.nodes, self.regions = Vector(graph.field("nodes")), []
        self.grid = numbers(graph.field("grid"))
        for region in Vector(graph.field("regions")):
            self.regions.append((enumerator(region.field("kind")), region.field("parent").number(), numbers(region.field("arguments")),
                                 numbers(region.field("effects")), numbers(region.field("yields"))))
        self.op = [enumerator(node.field("op")) for node in self.nodes]
        self.operands = [numbers(node.field("in")) for node in self.nodes]
        self.body = {i: Vector(self.nodes[i].field("attr"))[0].number() for i, op in enumerate(self.op) if OPS.get(op, ("",))[0] == "region"}
        self.order = [[] for _ in self.regions]
        live = list(self.live())
        home = self.homes(set(live))
        for i in live:
            self.order[home[i]].append(i)

    def live(self):
        seen, done = set(), []

        def visit(root):
            stack = []

            def enter(i):
                if i not in seen:
                    seen.add(i)
                    stack.append((i, iter(self.operands[i])))
            enter(root)
            while stack:
                i, operands = stack[-1]
                if (operand := next(operands, None)) is not None:
                    enter(operand)
                    continue
                stack.pop()
                if i in self.body:
                    visit_region(self.body[i])
                done.append(i)

        def visit_region(region):
            kind, _, arguments, effects, yields = self.regions[region]
            for i in arguments[0 if kind == "loop" else 1:] + effects + yields:
                visit(i)
        for i in self.grid:
            visit(i)
        visit_region(0)
        return done

    def homes(self, live):
        home = {}

        def use(i, region):
            home[i] = region if i not in home else self.around(home[i], region)
        for i in self.grid:
            use(i, 0)
        for region, (*_, yields) in enumerate(self.regions):
            for i in yields:
                use(i, region)
        for i in reversed(range(len(self.nodes))):
            if i not in live:
                continue
            node, region = self.nodes[i], self.nodes[i].field("region").number()
            stays = self.op[i] in ("argument", "result") or node.field("ordered").number() or node.field("uniform").number()
            home[i] = region if stays or i not in home else self.into_branches(region, home[i])
            for operand in self.operands[i]:
                use(operand, home[i])
        return home

    def around(self, a, b):
        while a != b:
            if a > b:
                a = self.regions[a][1]
            else:
                b = self.regions[b][1]
        return a

    def into_branches(self, region, inner):
        deepest = inner
        while inner != region:
            if self.regions[inner][0] != "branch":
                deepest = self.regions[inner][1]
            inner = self.regions[inner][1]
        return deepest


def graph_text(graph):
    regions = Vector(graph.field("regions"))
    return f"kernel {string(graph.field('name'))}({parameters_text(graph.field('parameters'))}), {len(Vector(graph.field('nodes')))} nodes" + \
        (f", {len(regions)} regions" if len(regions) > 1 else "")


def graph_lines(graph):
    if len(Vector(graph.field("nodes"))) > MOST_NODES:
        yield "nodes", "too many to put them in order"
        return
    nodes, numbered = Nodes(graph), {}

    def name(i):
        return f"%{numbered[i]}" if i in numbered else f"#{i}"

    def lines(region, depth):
        for i in nodes.order[region]:
            numbered[i] = len(numbered)
            yield "  " * depth + name(i), node_text(nodes.nodes[i], graph, name)
            if i in nodes.body:
                yield from lines(nodes.body[i], depth + 1)
        if nodes.regions[region][4]:
            yield "  " * depth + "yield", " ".join(map(name, nodes.regions[region][4]))
    yield from lines(0, 0)
    if nodes.grid:
        yield "grid", " ".join(map(name, nodes.grid))


def graph_of(kernel):
    """The graph of a kernel as it was traced, or None."""
    executable = kernel.field("executable_").field("_M_ptr")
    return executable.nth(0).field("traced_") if executable.number() else None


def kernel_text(kernel):
    graph = graph_of(kernel)
    return "no kernel" if graph is None else graph_text(graph)


def kernel_lines(kernel):
    graph = graph_of(kernel)
    return () if graph is None else graph_lines(graph)


# --- expressions of the language


def trace_of(value, serial):
    """The kernel with this number, if it is being traced in this thread; or None."""
    for trace in value.traces() if serial else ():
        try:
            number = trace.field("serial_").number()
        except Exception as error:
            raise Unreadable("the debug information does not describe Trace; clang needs -fstandalone-debug") from error
        if number == serial:
            return trace
    return None


def traced_text(value, id, serial):
    trace = trace_of(value, serial)
    if id == 0xffffffff and serial == 0:
        return "no value"
    if trace is None:
        return f"node {id} of a kernel that is not being traced here, or not initialized"
    graph = trace.field("builder_").field("graph_")
    return f"#{id} = {node_text(Vector(graph.field('nodes'))[id], graph)}"


def handle_text(handle):
    return traced_text(handle, handle.field("id").number(), handle.field("trace").number())


def handle_in(name, list_name=None):
    """For types that hold a handle. Element type and rank are those of the node, or else of the C++ type."""
    def text(value):
        result = handle_text(value.field(name))
        types = [a for a in arguments(value.type_name()) if "Access" not in a]
        return result if "#" in result or len(types) < 2 else f"{element(types[0])}, rank {types[1]}: {result}"
    return text


def var_text(var):
    slot = var.field("slot_")
    index, serial = slot.field("index").number(), slot.field("trace").number()
    type, rank = arguments(var.type_name())[:2]
    trace = trace_of(var, serial)
    if trace is None:
        return f"{element(type)}, rank {rank}: Var {index} of a kernel that is not being traced here, or not initialized"
    return f"Var {index}, now {traced_text(var, Vector(trace.field('slots_'))[index].field('value').number(), serial)}"


def literal_number(number):
    if boolean(number.field("integral_")):
        return str(number.field("integer_").number())
    return number_text(number.field("real_").real())


def term(value):
    """An expression inside of another."""
    name = key(value.type_name())
    if name == "Leaf":
        return f"#{value.field('value').field('id').number()}"
    if name == "LiteralExpr":
        return literal_number(value.field("value"))
    if name == "Apply":
        op = re.search(r"\d+$", arguments(value.type_name())[0])
        name = value.enumeration(NAMESPACE + "Op")[int(op[0])] if op else arguments(value.type_name())[0].split("::")[-1]
        return called(name, value.field("operands"))
    if name == "Custom":
        return called(string(value.field("function").field("name")), value.field("operands"))
    if name == "detail::Named":
        return f"function of {term(value.field('operand'))}"
    return describe(value)[0]


def called(name, operands):
    return f"{name}({', '.join(term(base.field('operand')) for base in operands.bases())})"


def expression_text(value):
    name = key(value.type_name())
    if name in ("Apply", "Custom"):
        type, rank = arguments(value.type_name())[1:3] if name == "Apply" else arguments(value.type_name())[:2]
        return f"{element(type)}, rank {rank}: {term(value)}"
    return term(value)


def literal_text(value):
    return f"{element(arguments(value.type_name())[0])}: {term(value)}"


# --- tensors


def device_kind(device):
    """"cpu", "cuda", "emulated", or "" if the program's symbols do not say."""
    backend = device.field("backend_").field("_M_ptr").number()
    if backend == 0:
        raise Unreadable("no device")
    table, = struct.unpack("Q", device.read(backend, 8))
    kind = re.search(r"(\w+)Backend", device.symbol(table))
    return kind[1].lower() if kind else ""


def device_text(device):
    return device_kind(device) or "a device of unknown kind"


def tensor_text(tensor):
    type = element(arguments(tensor.type_name())[0])
    rank = int(arguments(tensor.type_name())[1])
    extents, strides = [[array_item(tensor.field(name), axis).number() for axis in range(rank)] for name in ("extents_", "strides_")]
    if any(not 0 <= extent < 1 << 48 for extent in extents):
        raise Unreadable(f"extents {extents}")
    device, data = optional(tensor.field("device_")), tensor.field("data_").number()
    text = f"{type}[{','.join(map(str, extents))}]"
    if device is None:
        return f"{text}, no memory"
    kind = device_kind(device)
    text += f" on {device_text(device)}"
    dense = [1] * rank
    for axis in reversed(range(rank - 1)):
        dense[axis] = dense[axis + 1] * extents[axis + 1]
    if strides != dense:
        text += f", strides [{','.join(map(str, strides))}]"
    if kind == "cuda":
        return f"{text} at {data:#x}"
    size = 1
    for extent in extents:
        size *= extent
    elements, bytes = [], struct.calcsize(STORED[type])
    for i in range(min(size, MOST_ELEMENTS)):
        place = 0
        for extent, stride in zip(reversed(extents), reversed(strides)):
            place, i = place + i % extent * stride, i // extent
        elements.append(element_text(tensor.read(data + place * bytes, bytes), type))
    return f"{text}: {', '.join(elements)}{', ...' if size > MOST_ELEMENTS else ''}"


# --- plans


def label_text(label):
    graph, number = label.field("graph").number(), label.field("number").number()
    if not 0 <= graph < 1000:
        raise Unreadable(f"graph {graph} of a plan")
    return (f"g{graph}_" if graph else "") + string(label.field("stem")) + (f"_{number}" if number >= 0 else "") + string(label.field("suffix"))


def id_text(id):
    thing = arguments(id.type_name())[0].split("::")[-1]
    index = id.field("index").number()
    return f"{thing} {index}" if index >= 0 else f"no {thing}"


def layout_text(layout):
    return " | ".join(", ".join(f"{enumerator(f.field('place'))} {f.field('size').number()}" +
                                (f"/{f.field('unit').number()}" if f.field("unit").number() != 1 else "") for f in Vector(axis)) or "all"
                      for axis in Vector(layout.field("axes_"))) or "no axes"


def known_text(known):
    """A number that no step computes; "" for other storage."""
    index = known.field("_M_index").number()
    kinds = arguments(known.type_name())
    if index >= len(kinds):
        raise Unreadable("no kind of number")
    number = known.at(known.field("_M_u").address(), kinds[index])
    name = kinds[index].split("::")[-1]
    if number is None or name == "monostate":
        return "" if name == "monostate" else name
    if name == "Counter":
        return f"counter {number.field('loop').field('index').number()}"
    if name == "BlockIndex":
        return f"block {number.field('axis').number()}"
    argument = number.field("argument").number()
    return f"scalar {argument}" if name == "ScalarParameter" else f"extent {number.field('axis').number()} of parameter {argument}"


def storage_text(storage):
    kind = enumerator(storage.field("storage_class"))
    place = {"variable": "one variable", "registers": "{} registers", "shared": "{} elements of shared memory at {}",
             "workspace": "{} elements of the workspace at {}"}[kind]
    return f"{label_text(storage.field('label')) or known_text(storage.field('known'))}: {enumerator(storage.field('type'))} in " + \
        place.format(storage.field("registers").number(), storage.field("offset").number())


def value_text(value):
    return f"{id_text(value.field('storage'))}: {shape_text(value.field('shape'))}, {layout_text(value.field('layout'))}"


def buffer_text(buffer):
    memory = "the workspace" if boolean(buffer.field("in_workspace")) else "shared memory"
    return f"{label_text(buffer.field('label'))}: {enumerator(buffer.field('type'))} " \
        f"[{buffer.field('rows').number()},{buffer.field('columns').number()}], {buffer.field('stages').number()} stages in {memory} " \
        f"at {buffer.field('offset').number()}, {enumerator(buffer.field('form'))}"


def table_text(table):
    return f"{len(Vector(table.field('things_')))} entries"


def table_children(table):
    return ((f"[{i}]", thing) for i, thing in enumerate(Vector(table.field("things_"))))


def role_text(role):
    first, warps, groups = (role.field(name).number() for name in ("first_warp", "warps", "consumer_groups"))
    return f"{string(role.field('name')) or 'all'}: warps {first} to {first + warps * groups - 1}, {len(Vector(role.field('body')))} steps"


def vector_children(name):
    return lambda value: ((f"[{i}]", item) for i, item in enumerate(Vector(value.field(name))))


def roles_of(plan):
    return [role for phase in Vector(plan.field("phases")) for role in Vector(phase.field("roles"))]


def arch_text(arch):
    suffix = arch.field("suffix").number()
    return f"sm_{arch.field('major').number()}{arch.field('minor').number()}{chr(suffix) if suffix else ''}"


TABLES = ("storages", "values", "loops", "buffers", "scratch", "pipelines", "states", "tensor_maps")


def plan_text(plan):
    roles = roles_of(plan)
    warps = max((r.field("first_warp").number() + r.field("warps").number() * r.field("consumer_groups").number() for r in roles), default=0)
    return f"kernel {string(plan.field('kernel'))} for {arch_text(plan.field('target').field('arch'))}, {enumerator(plan.field('progress'))}: " \
        f"{warps * 32} threads, {plan.field('shared_bytes').number()} bytes of shared memory; " + \
        "; ".join(f"role {role_text(role)}" for role in roles)


def plan_children(plan):
    for name in TABLES:
        if len(Vector(plan.field(name).field("things_"))):
            yield name, plan.field(name)
    for name in ("phases", "search", "remarks"):
        if len(Vector(plan.field(name))):
            yield name, plan.field(name)


def kind_of(action):
    """The name of a step's kind: std::any holds the address of a function that is a template of it."""
    manager = action.field("kind_").field("_M_manager").number()
    found = re.search(r"_Manager_(internal|external)<(.*?)>::", action.symbol(manager)) if manager else None
    if not found:
        raise Unreadable("no kind of a step")
    return found[1], found[2]


def kind_text(action):
    return kind_of(action)[1].split("::")[-1]


def kind_children(action):
    place, name = kind_of(action)
    storage = action.field("kind_").field("_M_storage")
    address = storage.address() if place == "internal" else storage.field("_M_ptr").number()
    kind = action.at(address, name)
    return [(name.split("::")[-1], kind)] if kind is not None else []


def step_text(step):
    node = step.field("node").number()
    where = f" #{node}" if node != 0xffffffff else ""
    location = location_text(step.field("location"))
    return kind_text(step.field("action")) + where + (f"   // {location}" if location != "nowhere" else "")


def step_children(step):
    return kind_children(step.field("action"))


FORMATS = {
    "Handle": (handle_text, None),
    "Tile": (handle_in("value_"), None),
    "OrderedTile": (handle_in("value"), None),
    "Leaf": (handle_in("value"), None),
    "Scalar": (handle_in("value_"), None),
    "Coord": (handle_in("value_"), None),
    "GridExtent": (handle_in("value_"), None),
    "TensorView": (handle_in("value_"), None),
    "Optional": (handle_in("value_"), None),
    "Var": (var_text, None),
    "Var::Term": (handle_in("value"), None),
    "LiteralExpr": (literal_text, None),
    "Apply": (expression_text, None),
    "Custom": (expression_text, None),
    "detail::Named": (expression_text, None),
    "Tensor": (tensor_text, None),
    "Device": (device_text, None),
    "Shape": (shape_text, None),
    "Location": (location_text, None),
    "Parameter": (parameter_text, None),
    "Node": (node_text, None),
    "Graph": (graph_text, graph_lines),
    "Kernel": (kernel_text, kernel_lines),
    "Arch": (arch_text, None),
    "codegen::Layout": (layout_text, None),
    "codegen::Label": (label_text, None),
    "codegen::IdOf": (id_text, None),
    "codegen::Storage": (storage_text, None),
    "codegen::Value": (value_text, None),
    "codegen::Buffer": (buffer_text, None),
    "codegen::Table": (table_text, table_children),
    "codegen::Role": (role_text, vector_children("body")),
    "codegen::Plan": (plan_text, plan_children),
    "codegen::Action": (kind_text, kind_children),
    "codegen::Step": (step_text, step_children),
}
