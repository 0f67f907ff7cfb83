"""Kernels on NumPy arrays through libtessera_c, and back: the memory is shared, and each array is released once. Prints
"skipped:" without NumPy. Usage: check_numpy.py LIBRARY_OF_SAMPLES LIBRARY_OF_TESTS"""

import ctypes
import fractions
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
        assert False, f"not rejected: {words}"


def references(array):
    gc.collect()
    return sys.getrefcount(array)


# An array's memory is shared, and released when the tensor is dropped.
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

# Every type that both support, with unchanged strides.
copied = device.tensor("f32", [2, 4])
for type in "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8".split():
    cells = numpy.arange(24).astype(type).reshape(4, 6)[::-2, 1::3].T
    back = numpy.from_dlpack(tessera.Tensor.of(cells, stream))
    assert back.dtype == cells.dtype and back.strides == cells.strides and (back == cells).all()
    assert numpy.shares_memory(back, cells)

# Memory of Tessera outlives its handles, as long as the array uses it.
own = device.tensor("f32", [3, 4])
scaled(stream, array, own, 1)
kept = numpy.from_dlpack(own)
del own
gc.collect()
assert (kept == array).all()

# A capsule that is never consumed is freed, and so is a rejected one, and one of a thread that ends.
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

# A thousand iterations leak nothing.
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

# A consumer that rejects: its own exception is passed on, and the capsule is freed.
pages = int(status().split()[0])
for type in ("bf16", "f8e4m3") * 100:
    refusing = device.tensor(type, [2048, 1024])
    try:
        numpy.from_dlpack(refusing)
    except Exception as error:
        assert not isinstance(error, (SystemError, tessera.Error)) and str(error), repr(error)
    else:
        assert False, f"NumPy takes {type}"
assert int(status().split()[0]) - pages < 25000, "rejected tensors leak"
array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
before = references(array)
try:
    capsule = tessera.Tensor.of(array, stream).__dlpack__()
    raise ValueError("not this one")
except ValueError as error:
    del capsule  # while the exception is set
    assert str(error) == "not this one"
assert references(array) == before

# Errors have Tessera's messages.
refused("argument 1", "f64 [3,4]", "In<f32, 2>", action=lambda: scaled(stream, array.astype("f8"), shared, 2))
refused("2 arguments for 3 parameters", action=lambda: scaled(stream, array, shared))
refused("no kernel 'scale'", "scaled", action=lambda: samples["scale"])
refused("broken", "kernels.cpp", action=lambda: tests["broken"])
# Numbers of any type are accepted if the parameter's type can hold them, and rejected otherwise.
def given(type, number):
    result = numpy.zeros(1, dict(i="i", u="u", f="f")[type[0]] + str(int(type[1:]) // 8))
    tests["give_" + type](stream, result, number)
    return result[0].item()


kinds = [int, float, fractions.Fraction, numpy.int8, numpy.uint8, numpy.int32, numpy.int64, numpy.uint64, numpy.float16]
for type in "i32 u32 i64 u64 f32 f64".split():
    is_real = type[0] == "f"
    for kind in kinds:
        if is_real or hasattr(kind, "__index__"):
            assert given(type, kind(7)) == 7, (type, kind)
        else:
            refused("argument 2 is the real number 7", f"Scalar<{type}>", action=lambda: given(type, kind(7)))
    bits = int(type[1:])
    lowest, highest = (0, 2**bits - 1) if type[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for number in (lowest, highest, numpy.dtype(type[0] + str(bits // 8)).type(highest if not is_real else 0.5)):
        assert given(type, number) == (number if not is_real else getattr(numpy, f"float{bits}")(number)), (type, number)
    for number in (lowest - 1, highest + 1, 2**64, -(2**63) - 1, 10**30):
        if is_real:
            assert given(type, number) == getattr(numpy, f"float{bits}")(number), (type, number)
            continue
        try:
            assert False, (type, number, given(type, number))
        except OverflowError as error:  # more than 64 bits
            assert not -(2**63) <= number < 2**64 and f"argument 2 is {number}" in str(error) and f"Scalar<{type}>" in str(error)
        except tessera.Error as error:
            assert -(2**63) <= number < 2**64 and f"given {number}, which is out of its range" in str(error), error
for number, wanted in ((10**400, OverflowError), ([7], TypeError), ("7", TypeError), (7j, TypeError), (None, tessera.Error)):
    try:
        assert False, (number, given("f64", number))
    except wanted:
        pass
try:
    assert False, device.tensor("f32", [2**64 + 3])
except OverflowError:
    pass
assert "[2,3]" in repr(device.tensor("f32", [numpy.int64(2), numpy.uint8(3)]))
numbers = numpy.zeros(40, numpy.int64)
tests["add_numbers"](stream, numbers, -1, 1 << 40, 5.5)
assert (numbers == (1 << 40) + 4).all()

parts = [numpy.full((2, 3), 1, numpy.float32), numpy.full((8, 64), 10, numpy.float32).T[:3, :2]]
total = numpy.zeros((2, 2), numpy.float32)
tests["add_lists"](stream, parts, None, total)
assert (total == 11).all()
tests["add_lists"](stream, (), parts[0], total)
assert (total == 1).all()
try:
    assert False, tests["add_lists"](stream, parts * 2, None, total)
except tessera.Error as error:
    assert "argument 1 has 4 tensors" in str(error), error

sys.argv = ["tessera_numpy.py", sys.argv[1]]
runpy.run_path(str(pathlib.Path(tessera.__file__).with_name("tessera_numpy.py")))
print("ok, numpy", numpy.__version__)
