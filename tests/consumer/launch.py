"""A program of a project that uses Tessera from Python, with the installed module. Usage: launch.py KERNELS [DEVICE]"""

import sys

import tessera

device = tessera.Device(sys.argv[2] if len(sys.argv) > 2 else "cpu")
numbers = device.tensor("f32", [100])
tessera.Library(sys.argv[1])["fill"](device.stream(), numbers, 7)
device.synchronize()
print(device.name, numbers)
