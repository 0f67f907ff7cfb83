"""Printers of Tessera's types for gdb: source tools/debugger/tessera_gdb.py. tessera_format.py has the texts."""

import sys
from pathlib import Path

import gdb
import gdb.printing

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tessera_format  # noqa: E402


class Value:
    """The accessor of tessera_format over a gdb.Value."""

    def __init__(self, value):
        self.value = value.referenced_value() if value.type.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF) else value
        self.type = self.value.type.strip_typedefs().unqualified()

    def type_name(self):
        return self.type.name or ""

    def field(self, name):
        return Value(self.value[name])

    def bases(self):
        return [Value(self.value[field]) for field in self.type.fields() if field.is_base_class]

    def number(self):
        return int(self.value)

    def real(self):
        return float(self.value)

    def names(self):
        return {field.enumval: field.name.split("::")[-1] for field in self.type.fields()}

    def enumeration(self, type):
        return {field.enumval: field.name.split("::")[-1] for field in gdb.lookup_type(type).fields()}

    def nth(self, i):
        return Value(self.value[i])

    def step(self):
        return self.type.target().sizeof

    def address(self):
        return int(self.value.address)

    def at(self, address, type):
        try:
            return Value(gdb.Value(address).cast(gdb.lookup_type(type).pointer()).dereference())
        except gdb.error:
            return None

    def read(self, address, count):
        return gdb.selected_inferior().read_memory(address, count).tobytes()

    def symbol(self, address):
        text = gdb.execute(f"info symbol {address:#x}", to_string=True)
        return "" if text.startswith("No symbol") else text

    def traces(self):
        frame = gdb.newest_frame()
        while frame:
            try:
                block = frame.block()
            except RuntimeError:  # a function without debug information
                block = None
            while block and not block.is_global and not block.is_static:
                for symbol in block:
                    if symbol.is_variable and symbol.type.strip_typedefs().name == "tessera::internal::Trace":
                        yield Value(symbol.value(frame))
                block = block.superblock
            frame = frame.older()


class Printer:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return tessera_format.describe(self.value)[0]


class ParentPrinter(Printer):
    """Of a type with children. gdb prints braces for each object that has this function."""

    def children(self):
        return ((name, child if isinstance(child, str) else child.value) for name, child in tessera_format.children(self.value))


class Printers(gdb.printing.PrettyPrinter):
    def __init__(self):
        super().__init__("tessera")

    def __call__(self, value):
        value = Value(value)
        key = tessera_format.key(value.type_name())
        if key is None:
            return None
        return (ParentPrinter if tessera_format.FORMATS[key][1] else Printer)(value)


gdb.printing.register_pretty_printer(gdb.current_objfile(), Printers(), replace=True)
