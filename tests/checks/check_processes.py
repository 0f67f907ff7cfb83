"""Kernels on NumPy arrays in forked children, as multiprocessing and concurrent.futures make them, and at the end of the
interpreter. Prints "skipped:" if there is no NumPy. Usage: check_processes.py LIBRARY_OF_SAMPLES"""

import atexit
import concurrent.futures
import multiprocessing
import os
import subprocess
import sys

try:
    import numpy
except ImportError:
    print("skipped: there is no numpy (python3-numpy)")
    sys.exit()
if not hasattr(numpy, "from_dlpack"):
    print(f"skipped: numpy {numpy.__version__} has no from_dlpack, which came with 1.23")
    sys.exit()

import tessera

size = 1 << 18  # many CTAs, which threads share
device = tessera.Device("cpu")
stream = device.stream()
scaled = tessera.Library(sys.argv[1])["scaled"]


def total(factor):
    array = numpy.ones((size // 64, 64), dtype=numpy.float32)
    result = device.tensor("f32", list(array.shape))
    scaled(stream, array, result, float(factor))
    return float(numpy.from_dlpack(result).sum())


def child(queue, factor):
    queue.put(total(factor))


if "at-the-end" in sys.argv:
    atexit.register(lambda: print("at exit", total(2) == 2 * size, flush=True))
    kept = device.tensor("f32", [100])  # destroyed with the module, after that
    print("main", total(1) == size, flush=True)
    sys.exit()

assert total(3) == 3 * size  # the threads of this process exist now
fork = multiprocessing.get_context("fork")
queue = fork.Queue()
children = [fork.Process(target=child, args=(queue, factor)) for factor in range(4)]
for each in children:
    each.start()
assert sorted(queue.get(timeout=60) for _ in children) == [factor * size for factor in range(4)]
for each in children:
    each.join(60)
    assert each.exitcode == 0, each.exitcode
with fork.Pool(2) as pool:
    assert pool.map_async(total, range(6)).get(60) == [factor * size for factor in range(6)]
with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as executor:
    assert list(executor.map(total, range(6), timeout=60)) == [factor * size for factor in range(6)]
assert total(5) == 5 * size

# A child of a child.
if (first := os.fork()) == 0:
    good = total(1) == size
    if (second := os.fork()) == 0:
        os._exit(0 if good and total(2) == 2 * size else 1)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]))
assert os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) == 0

said = subprocess.run([sys.executable, __file__, sys.argv[1], "at-the-end"], capture_output=True, text=True, timeout=60)
assert said.returncode == 0 and said.stdout == "main True\nat exit True\n" and not said.stderr, said
print("processes: ok")
