"""Summaries of Tessera's types for lldb: command script import tools/debugger/tessera_lldb.py. tessera_format.py has the texts."""

import sys
from pathlib import Path

import lldb

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tessera_format  # noqa: E402


class Value:
    """The accessor of tessera_format over an SBValue."""

    def __init__(self, value):
        value = value.Dereference() if value.GetType().IsReferenceType() else value
        self.value = value.GetNonSyntheticValue()
        if not self.value.IsValid():
            raise tessera_format.Unreadable("no such object")
        self.type = self.value.GetType().GetCanonicalType().GetUnqualifiedType()
        self.target = self.value.GetTarget()

    def type_name(self):
        return self.type.GetName() or ""

    def field(self, name):
        return Value(self.value.GetChildMemberWithName(name))

    def bases(self):
        members = [self.type.GetDirectBaseClassAtIndex(i) for i in range(self.type.GetNumberOfDirectBaseClasses())]
        return [Value(self.value.CreateChildAtOffset(m.GetType().GetName(), m.GetOffsetInBytes(), m.GetType())) for m in members]

    def number(self):
        error = lldb.SBError()
        signed = self.type.GetTypeFlags() & lldb.eTypeIsSigned
        number = self.value.GetValueAsSigned(error) if signed else self.value.GetValueAsUnsigned(error)
        if error.Fail():
            raise tessera_format.Unreadable(error.GetCString())
        return number if signed else self.unsigned(number, self.type)

    def real(self):
        return float(self.value.GetValue())

    @staticmethod
    def unsigned(number, type):
        return number & (1 << 8 * type.GetByteSize()) - 1  # lldb extends the sign of an enumerator of 8 bits

    def names(self):
        return {self.unsigned(member.GetValueAsUnsigned(), self.type): member.GetName() for member in self.type.GetEnumMembers()}

    def enumeration(self, type):
        found = self.target.FindFirstType(type)
        return {self.unsigned(member.GetValueAsUnsigned(), found): member.GetName() for member in found.GetEnumMembers()}

    def nth(self, i):
        type = self.type.GetArrayElementType() if self.type.IsArrayType() else self.type.GetPointeeType()
        start = self.address() if self.type.IsArrayType() else self.number()
        return Value(self.value.CreateValueFromAddress(f"[{i}]", start + i * type.GetByteSize(), type))

    def step(self):
        return self.type.GetPointeeType().GetByteSize()

    def address(self):
        return self.value.GetLoadAddress()

    def at(self, address, type):
        found = self.target.FindFirstType(type)
        return Value(self.value.CreateValueFromAddress(type, address, found)) if found.IsValid() else None

    def read(self, address, count):
        error = lldb.SBError()
        data = self.target.GetProcess().ReadMemory(address, count, error)
        if error.Fail():
            raise tessera_format.Unreadable(error.GetCString())
        return data

    def symbol(self, address):
        if name := self.target.ResolveLoadAddress(address).GetSymbol().GetName():
            return name
        # lldb 14 finds no section for a place in .data.rel.ro, where tables of virtual functions are.
        starts = [(module.GetObjectFileHeaderAddress().GetLoadAddress(self.target), module) for module in self.target.module_iter()]
        start, module = max((pair for pair in starts if pair[0] <= address), key=lambda pair: pair[0], default=(0, None))
        return module and module.ResolveFileAddress(address - start).GetSymbol().GetName() or ""

    def traces(self):
        for frame in self.target.GetProcess().GetSelectedThread():
            for variable in frame.GetVariables(True, True, False, True):
                if variable.GetType().GetCanonicalType().GetName() == "tessera::internal::Trace":
                    yield Value(variable)


def summary(value, _):
    return tessera_format.describe(Value(value))[0]


class Children:
    def __init__(self, value, _):
        self.value, self.found = value, []

    def update(self):
        self.found = tessera_format.children(Value(self.value))

    def has_children(self):
        return bool(self.found)

    def num_children(self):
        return len(self.found)

    def get_child_index(self, name):
        return next((i for i, (own, _) in enumerate(self.found) if own == name), -1)

    def get_child_at_index(self, i):
        name, child = self.found[i]
        target = self.value.GetTarget()
        if not isinstance(child, str):
            return self.value.CreateValueFromAddress(name, child.address(), child.value.GetType())
        data = lldb.SBData.CreateDataFromCString(target.GetProcess().GetByteOrder(), target.GetAddressByteSize(), child)
        type = target.GetBasicType(lldb.eBasicTypeChar).GetArrayType(len(child.encode()))
        return target.CreateValueFromData(name, data, type)


def __lldb_init_module(debugger, _):
    names = "|".join(name.replace("::", "(<.*>)?::") for name in tessera_format.FORMATS)
    pattern = f"^tessera::internal::({names})(<.*>)?$"
    debugger.HandleCommand(f'type summary add -w tessera -e -p -x "{pattern}" -F {__name__}.summary')
    debugger.HandleCommand(f'type synthetic add -w tessera -p -x "{pattern}" -l {__name__}.Children')
    debugger.HandleCommand("type category enable tessera")
