#!/usr/bin/env python3
"""Runs the kernels of samples/python/kernels.cpp in place on NumPy arrays: nothing is copied.

    cmake --build build/release --target tessera_c sample_kernels
    TESSERA_C=build/release/bin/libtessera_c.so samples/python/tessera_numpy.py build/release/bin/libsample_kernels.so
"""

import sys

import numpy

import tessera

device = tessera.Device("cpu")
stream = device.stream()
kernels = tessera.Library(sys.argv[1])
print(device.name, "has", ", ".join(repr(kernels[name]) for name in kernels.names))

x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
y = numpy.zeros((4, 3), dtype=numpy.float32)

# An array is used in place, with its own strides: here x is passed transposed.
kernels["scaled"](stream, x.T, y, 2.0)
assert (y == 2 * x.T).all()

# A Tensor that you keep shares the array's memory: each side sees what the other writes.
tensor = tessera.Tensor.of(y, stream)
y[0, 0] = 100
kernels["softmax"](stream, tensor)
assert numpy.allclose(y.sum(axis=1), 1) and y[0, 0] == 1
print(tensor, " is NumPy's memory:\n", y, sep="")

# The other way around: a tensor that Tessera allocated becomes a NumPy array.
own = device.tensor("f32", [3, 4])
kernels["scaled"](stream, x, own, 0.5)
array = numpy.from_dlpack(own)
kernels["scaled"](stream, x, own, 3)
assert (array == 3 * x).all()  # the array sees the second launch, which ran after the array was made
print("as an array:\n", array, sep="")

try:
    kernels["scaled"](stream, x.astype(numpy.float64), y, 2.0)
except tessera.Error as error:
    print("rejected:", error)
