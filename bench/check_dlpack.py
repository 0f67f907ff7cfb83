#!/usr/bin/env python3
"""PyTorch tensors through DLPack, on the CPU and on a GPU: Tessera's kernels work on PyTorch's memory and PyTorch on
Tessera's, without a copy, in stream order, and 1,000 round trips leak nothing.

    cmake --build build/release --target tessera_c sample_kernels
    export TESSERA_C=build/release/bin/libtessera_c.so
    bench/check_dlpack.py build/release/bin/libsample_kernels.so [cpu] [cuda]
"""

import gc
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "samples/python"))
import tessera


def memory_in_use(device):
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated(device), torch.cuda.mem_get_info(device)[0]
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096, 0


def check(name, library):
    device, where = tessera.Device(name), torch.device("cuda:0" if name.startswith("cuda") else name)
    print(f"{device.name}, torch {torch.__version__}")
    stream = device.stream()
    scaled, softmax = library["scaled"], library["softmax"]

    # The same memory, tested by writing on one side: theirs here, ours there.
    x = torch.arange(12, dtype=torch.float32, device=where).reshape(3, 4)
    y = torch.zeros(3, 4, device=where)
    scaled(stream, x, y, 2.0)
    device.synchronize()
    assert torch.equal(y, 2 * x)
    tensor = tessera.Tensor.of(y, stream)
    back = torch.from_dlpack(tensor)
    assert back.data_ptr() == y.data_ptr() and back.device == y.device
    y[1, 2] = -5
    assert back[1, 2].item() == -5
    softmax(stream, tensor)
    back = torch.from_dlpack(tensor)  # whose stream waits for the launch
    assert torch.allclose(back.sum(1), torch.ones(3, device=where))
    assert torch.equal(back, y)

    # Tessera's own memory as theirs, retained by them.
    own = device.tensor("f32", [3, 4])
    scaled(stream, x, own, 1.0)
    theirs = torch.from_dlpack(own)
    assert torch.equal(theirs, x)
    theirs[0, 0] = 100
    again = torch.zeros(3, 4, device=where)
    scaled(stream, tessera.Tensor.of(theirs, stream), again, 1.0)
    device.synchronize()
    assert again[0, 0].item() == 100
    del own
    gc.collect()
    theirs += 1
    assert theirs[0, 0].item() == 101

    # Any strides and offsets.
    wide = torch.arange(60, dtype=torch.float32, device=where).reshape(6, 10)
    part = wide[1::2, 2:8:3].T
    result = torch.zeros(2, 3, device=where)
    scaled(stream, part, result, 3.0)
    device.synchronize()
    assert torch.equal(result, 3 * part)
    assert torch.from_dlpack(tessera.Tensor.of(part, stream)).stride() == part.stride()

    # Every common type, 8-bit ones if torch exports them.
    for type in [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32,
                 torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn,
                 torch.float8_e5m2]:
        cells = torch.zeros(5, dtype=type, device=where)
        try:
            shared = tessera.Tensor.of(cells, stream)
        except tessera.Error:
            raise
        except Exception as refusal:  # torch's own
            print(f"  torch lends no {type}: {refusal}")
            continue
        try:
            back = torch.from_dlpack(shared)
        except RuntimeError as refusal:
            print(f"  torch takes no {type}: {refusal}")
            continue
        assert back.dtype == type and back.data_ptr() == cells.data_ptr()
    try:
        tessera.Tensor.of(torch.zeros(3, dtype=torch.bool, device=where), stream)
        assert False, "bool is taken"
    except tessera.Error as error:
        assert "view it as u8" in str(error)

    # A thousand round trips: theirs through ours and back, ours through theirs; nothing is leaked.
    big = torch.ones(1024, 1024, device=where)
    target = torch.zeros(1024, 1024, device=where)
    before = None
    for i in range(1010):
        if i == 10:  # both have allocated their caches by now
            before = memory_in_use(where)
        back = torch.from_dlpack(tessera.Tensor.of(big, stream))
        assert back.data_ptr() == big.data_ptr()
        scaled(stream, back, target, float(i))
        ours = torch.from_dlpack(device.tensor("f32", [1024, 1024]))
        ours[0, 0] = i
        del back, ours
    device.synchronize()
    assert target[5, 5].item() == 1009
    after = memory_in_use(where)
    grown = max(after[0] - before[0], before[1] - after[1])
    print(f"  1,000 rounds of 8 MB: {grown / 1e6:.1f} MB more in use")
    assert grown < 64e6, "memory grows"

    if where.type == "cuda":
        check_streams(device, library)


def check_streams(device, library):
    """Stream dependencies in both directions, without a wait on the host: each side's long work comes first."""
    scaled, side = library["scaled"], torch.cuda.Stream()
    n = 4096
    for ours in [device.stream(), device.new_stream(), device.stream_from(side.cuda_stream)]:
        for theirs in [torch.cuda.default_stream(), side]:
            with torch.cuda.stream(theirs):
                x = torch.ones(n, n, device="cuda")
                y = torch.zeros(n, n, device="cuda")
                for _ in range(20):
                    x = x @ torch.eye(n, device="cuda")
                x += 1
                source, target = tessera.Tensor.of(x, ours), tessera.Tensor.of(y, ours)  # ours waits for theirs
                for _ in range(50):
                    scaled(ours, source, target, 3.0)
                result = torch.from_dlpack(target) * 2  # and theirs for ours
                right = bool((result == 12).all())
                # They are used on both streams, and torch knows only one: its stream continues after ours.
                ours.synchronize()
            assert right, (ours.native(), theirs)
    # A torch stream used as ours: in order without any event.
    ours = device.stream_from(side.cuda_stream)
    assert ours.native() == side.cuda_stream
    begin = ours.record()
    with torch.cuda.stream(side):
        torch.ones(n, n, device="cuda") @ torch.ones(n, n, device="cuda")
    end = ours.record()
    print(f"  a product of torch between two events of Tessera: {end.milliseconds_since(begin):.2f} ms")


if __name__ == "__main__":
    library = tessera.Library(sys.argv[1])
    wanted = sys.argv[2:] or ["cpu"] + ["cuda"] * torch.cuda.is_available()
    for name in wanted:
        check(name, library)
    print("ok")
