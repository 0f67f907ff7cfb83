"""Compares the texts that gdb and lldb print of Tessera's types, and of memory that holds no object, with the expected ones. Prints
"skipped:" without the debugger. Usage: check_debugger.py gdb|lldb PATH_OF_THE_DEBUGGER PROGRAM"""

import glob
import os
import re
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools/debugger"
PLACE = r"   // \S*debugged\.cpp:\d+"
LOST = "a kernel that is not being traced here, or not initialized"
NOT = r"<not initialized, or not readable: .+>"

# Where the program stops; variables there, and a regular expression for the text of each.
STOPS = (
    ("in_kernel", (
        ("x", rf"#\d+ = tensor \{{0\}} : f32{PLACE}"),
        ("row", rf"#\d+ = block \{{0\}} : i32\[\]{PLACE}"),
        ("part", rf"#\d+ = argument \{{0\}} : i32\[\]{PLACE}"),
        ("xs", rf"#\d+ = load #\d+ #\d+ #\d+ \{{0\}} : f32\[1,64\]{PLACE}"),
        ("square", r"f32, rank 2: add\(mul\((#\d+), \1\), 0\.5\)"),
        ("sums", rf"#\d+ = sum #\d+ \{{1\}} : f32\[1,1\]{PLACE}"),
        ("total", rf"Var 0, now #\d+ = add #\d+ #\d+ : f32\[1,1\]{PLACE}"),
    )),
    ("at_end", (
        ("graph", r"kernel row_sums\(In<f32, 2>, Out<f32, 2>\), \d+ nodes, 2 regions"),
        ("branching", r"kernel branches\(In<f32, 1>, InOut<i32, 1>, List<In<f64, 1>, 3>, Scalar<f32>, Out<f32, 1>\), \d+ nodes, 3 regions"),
        ("sums", r"kernel row_sums\(In<f32, 2>, Out<f32, 2>\), \d+ nodes, 2 regions"),
        ("no_kernel", "no kernel"),
        ("node", rf"store #\d+ #\d+ #\d+ #\d+{PLACE}"),
        ("node.location", r"\S*debugged\.cpp:\d+|file = .*debugged"),
        ("shape", r"\[4,8\]"),
        ("layout", None),
        ("plan", r"kernel k_row_sums for sm_90a, complete: 32 threads, 0 bytes of shared memory; role all: warps 0 to 0, \d+ steps"),
        ("plan", r"\[0\] = extent 0 of parameter 0: i32 in one variable"),
        ("plan", r"\[\d+\] = load_\d+: f32 in 4 registers"),
        ("plan", r"\[\d+\] = Storage 6: \[1,64\], all \| lane 16, reg 4"),
        ("plan", rf"\[0\] = Compute #\d+{PLACE}"),
        ("plan", rf"\[\d+\] = Store #\d+{PLACE}"),
        ("plan", "GridDependencyTrigger"),
        ("step", rf"Compute #\d+{PLACE}"),
        ("step", r"Compute = \{"),
        ("device", "cpu"),
        ("x", r"f32\[2,3\] on cpu: 0\.1, 2, 3, 4, 5, 6$"),
        ("turned", r"f32\[3,2\] on cpu, strides \[1,3\]: 0\.1, 4, 2, 5, 3, 6$"),
        ("halves", r"f16\[10\] on cpu: 1\.5, -2, 65504, 1, 2, 3, 4, 5, \.\.\.$"),
        ("bytes", r"f8e4m3\[3\] on cpu: 448, -0\.001953125, 1\.125$"),
        ("wide", r"f8e5m2\[3\] on cpu: 57344, -1\.75, 1\.52587890625e-05$"),
        ("brains", r"bf16\[2\] on cpu: 0\.100097656, 3$"),
        ("truths", r"pred\[2\] on cpu: true, false$"),
        ("empty", r"i64\[0,0,0\], no memory$"),
        ("no_tile", rf"f32, rank 2: node \d+ of {LOST}"),
        ("no_var", rf"f32, rank 2: Var \d+ of {LOST}"),
        *((name, NOT) for name in ("no_tensor", "no_graph", "no_node", "no_shape", "no_location", "no_plan", "no_step", "no_layout",
                                   "nowhere_graph", "nowhere_plan")),
    )),
)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit()


def session(kind):
    """The commands. Each text begins after a line "@@ STOP NAME"."""
    gdb = kind == "gdb"
    yield f"source {TOOLS}/tessera_gdb.py" if gdb else f"command script import {TOOLS}/tessera_lldb.py"
    if gdb:
        yield from ("set width 0", "set print pretty on", "set print elements 1000")
    for i, (stop, variables) in enumerate(STOPS):
        yield f"tbreak {stop}" if gdb else f"breakpoint set --one-shot true --name {stop}"
        yield "continue" if i else "run"
        yield "up"
        for name in dict.fromkeys(name for name, _ in variables):
            yield f"echo \\n@@ {stop} {name}\\n" if gdb else f"script print('\\n@@ {stop} {name}')"
            yield f"print {name}" if gdb else f"frame variable {name}"
        yield f"echo \\n@@ {stop} end\\n" if gdb else f"script print('\\n@@ {stop} end')"
    yield "kill" if gdb else "process kill"


def run(kind, debugger, program):
    environment = dict(os.environ)
    if kind == "lldb":  # Debian's does not find its own Python module; its Python is the system's, not the first one in PATH
        environment["PATH"] = f"/usr/bin:{environment.get('PATH', '')}"
        version = re.search(r"version (\d+)", subprocess.run([debugger, "--version"], capture_output=True, text=True).stdout)
        modules = glob.glob(f"/usr/lib/llvm-{version[1]}/lib/python3*/dist-packages") if version else []
        environment["PYTHONPATH"] = ":".join([*sorted(modules, key=len, reverse=True), environment.get("PYTHONPATH", "")])
    options = ["-nx", "-batch"] if kind == "gdb" else ["--no-lldbinit", "--batch"]
    for command in session(kind):
        options += ["-ex" if kind == "gdb" else "-o", command]
    done = subprocess.run([debugger, *options, program], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment, timeout=60)
    return done.stdout.replace("\r", "") + done.stderr


def main():
    kind, debugger, program = sys.argv[1:]
    if not os.access(debugger, os.X_OK):
        skip(f"there is no {kind}")
    output = run(kind, debugger, program)
    if found := re.search(r".*(Python scripting is not supported|ModuleNotFoundError: No module named '(lldb|six)|no script interpreter).*", output):
        skip(f"{kind} has no Python: {found[0]}")
    if found := re.search(r".*(ptrace.*not permitted|Could not trace the inferior|personality set failed|ptrace failed).*", output):
        skip(f"{kind} may not start programs here: {found[0]}")
    parts = {name: text for name, text in re.findall(r"^@@ (\w+ \S+)\n(.*?)(?=^@@ |\Z)", output, re.M | re.S)}
    faults = re.findall(r"^.*(?:Traceback|Python Exception|Error in sys).*$", output, re.M)
    texts = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    layout = texts.splitlines()[-1]
    for stop, variables in STOPS:
        for name, pattern in variables:
            text = parts.get(f"{stop} {name}", "")
            if not re.search(re.escape(layout) if pattern is None else pattern, text, re.M):
                faults.append(f"{name} in the caller of {stop}: expected {pattern or layout}\nfound {text or output}")
    # Each line of a graph's text, in order.
    for name, text in zip(("graph", "branching"), re.split(r"^kernel ", texts, flags=re.M)[1:], strict=True):
        expected = [line.strip() for line in text.splitlines() if re.match(r" *%", line)]
        printed = [line.strip().rstrip(",") for line in parts.get(f"at_end {name}", "").splitlines() if re.match(r" *%", line)]
        if kind == "lldb":
            printed = [re.sub(r'\\(["\\])', r"\1", re.sub(r'= "(.*)"$', r"= \1", line)) for line in printed]
        if printed != expected or len(expected) < 10:
            faults.append(f"{name}: expected\n" + "\n".join(expected) + "\nfound\n" + "\n".join(printed))
    print("\n".join(faults) or f"{kind}: {sum(len(variables) for _, variables in STOPS)} texts are as expected")
    sys.exit(bool(faults))


main()
