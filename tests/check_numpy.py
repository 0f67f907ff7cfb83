"""Kernels on NumPy's arrays through libtessera_c, and back: the same memory, given back once each. Prints "skipped:"
where there is no NumPy. Usage: check_numpy.py LIBRARY_OF_SAMPLES LIBRARY_OF_TESTS"""

import ctypes
import gc
import pathlib
import runpy
import sys
import threading

try:
    import numpy
except ImportError:
    print("skipped: there is no numpy (python3-numpy)")
    sys.exit()
if not hasattr(numpy, "from_dlpack"):
    print(f"skipped: numpy {numpy.__version__} has no from_dlpack, which came with 1.23")
    sys.exit()

import tessera

device = tessera.Device("cpu")
stream = device.stream()
samples, tests = (tessera.Library(path) for path in sys.argv[1:3])
scaled = samples["scaled"]


def refused(*words, action):
    try:
        action()
    except tessera.Error as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"'{error}' does not say {missing}"
    else:
        assert False, f"not refused: {words}"


def references(array):
    gc.collect()
    return sys.getrefcount(array)


# An array's memory, seen from both sides, given back when the tensor goes.
array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
before = references(array)
tensor = tessera.Tensor.of(array, stream)
assert references(array) > before
assert "f32 [3,4]" in repr(tensor)
other = device.tensor("f32", [3, 4])
array[2, 3] = 50
scaled(stream, tensor, other, 2)
assert numpy.from_dlpack(other)[2, 3] == 100
scaled(stream, other, tensor, 0.5)
assert array[2, 3] == 50
del tensor
assert references(array) == before

# Every type that both have, and strides as they are.
copied = device.tensor("f32", [2, 4])
for type in "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8".split():
    cells = numpy.arange(24).astype(type).reshape(4, 6)[::-2, 1::3].T
    back = numpy.from_dlpack(tessera.Tensor.of(cells, stream))
    assert back.dtype == cells.dtype and back.strides == cells.strides and (back == cells).all()
    assert numpy.shares_memory(back, cells)

# What Tessera made outlives its handles in the array.
own = device.tensor("f32", [3, 4])
scaled(stream, array, own, 1)
kept = numpy.from_dlpack(own)
del own
gc.collect()
assert (kept == array).all()

# A capsule that nobody takes is freed, and so is one that is refused; that of a thread that goes, too.
shared = device.tensor("f32", [3, 4])
for _ in range(3):
    shared.__dlpack__()
complex_array = numpy.zeros(3, numpy.complex64)
before = references(complex_array)
refused("code 5, 64 bits", action=lambda: tessera.Tensor.of(complex_array, stream))
refused("0 axes", action=lambda: tessera.Tensor.of(numpy.array(3, numpy.float32), stream))
assert references(complex_array) == before
before = references(array)
thread = threading.Thread(target=lambda: scaled(device.new_stream(), array, device.tensor("f32", [3, 4]), 2))
thread.start()
thread.join()
assert references(array) == before

# A thousand rounds, and nothing is left of them.
before = references(array)
for _ in range(1000):
    numpy.from_dlpack(tessera.Tensor.of(array, stream))[0, 0]
    scaled(stream, array, shared, 2)
assert references(array) == before
status = pathlib.Path("/proc/self/statm").read_text
big = numpy.zeros((1024, 1024), numpy.float32)
target = device.tensor("f32", [1024, 1024])
pages = int(status().split()[1])
for _ in range(1000):
    view = numpy.from_dlpack(device.tensor("f32", [1024, 1024]))
    view[0, :16]
assert int(status().split()[1]) - pages < 20000, "memory grows"

# Errors are Tessera's sentences.
refused("argument 1", "f64 [3,4]", "In<f32, 2>", action=lambda: scaled(stream, array.astype("f8"), shared, 2))
refused("2 arguments for 3 parameters", action=lambda: scaled(stream, array, shared))
refused("no kernel 'scale'", "scaled", action=lambda: samples["scale"])
refused("broken", "kernels.cpp", action=lambda: tests["broken"])
numbers = numpy.zeros(40, numpy.int64)
tests["add_numbers"](stream, numbers, -1, 1 << 40, 5.5)
assert (numbers == (1 << 40) + 4).all()

sys.argv = ["tessera_numpy.py", sys.argv[1]]
runpy.run_path(str(pathlib.Path(tessera.__file__).with_name("tessera_numpy.py")))
print("ok, numpy", numpy.__version__)
