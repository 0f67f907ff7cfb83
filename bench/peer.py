"""The peer of `bench`: PyTorch, on the same rows, alternating with Tessera. common/peer.hpp defines the protocol.

Each row is computed in every way that PyTorch has for it; the fastest is the peer. Its time is, like ours, that of the
device: a CUDA graph of the same number of calls over rotating buffers that together exceed the L2 cache.
"""

import gc
import itertools
import json
import math
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    from peer_models import MODELS, compiled, normal, one_line
    from peer_tensors import PROGRAMS
except ImportError as reason:
    print(json.dumps({"error": f"{sys.executable} has no PyTorch ({reason})"}), flush=True)
    sys.exit()

TYPES = {"f16": torch.float16, "f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}
TYPES |= {"u8": torch.uint8, "i8": torch.int8, "f8e4m3": torch.float8_e4m3fn}


class Captured:
    """A CUDA graph of calls; call i uses set i modulo `sets`."""

    def __init__(self, call, sets, calls):
        self.call, self.sets, self.calls = call, sets, calls
        self.results = [None] * sets  # retained, so that they rotate as the operands do
        start = time.perf_counter()
        self.run(1)
        torch.cuda.synchronize()
        self.first = (time.perf_counter() - start) * 1e3  # compilation included
        self.least_launched = math.inf  # of this way and of others
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.run(sets)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.run(calls)

    def run(self, calls):
        for i in range(calls):
            self.results[i % self.sets] = self.call(i % self.sets)

    def turn(self):
        self.graph.replay()  # the first run after the other's turn pays for the GPU's context switch
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        self.graph.replay()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) / self.calls

    def launched(self):
        self.run(self.sets)  # memory outside the graph
        torch.cuda.synchronize()
        start = time.perf_counter()
        self.run(self.calls)
        torch.cuda.synchronize()
        return min((time.perf_counter() - start) * 1e3 / self.calls, self.least_launched)


def copy(shape, dtype, device, sets):
    x = [normal(shape, dtype, device) for _ in range(sets)]
    y = [torch.empty_like(t) for t in x]
    fused = compiled(lambda to, t: to.copy_(t))
    yield "Tensor.copy_", lambda i: y[i].copy_(x[i])
    yield "torch.add of 0", lambda i: torch.add(x[i], 0, out=y[i])
    yield "Tensor.copy_, compiled", lambda i: fused(y[i], x[i])


def gelu(shape, dtype, device, sets):
    x = [normal(shape, dtype, device) for _ in range(sets)]
    function = lambda t: F.gelu(t, approximate="tanh")
    fused = compiled(function)
    yield "F.gelu", lambda i: function(x[i])
    yield "F.gelu, compiled", lambda i: fused(x[i])


def in_cupy(name, function, x):
    """CuPy's way, if CuPy is installed: `function` of it and of a set's array, in PyTorch's memory, which a graph can capture."""
    try:
        import cupy
    except ImportError:
        return

    def allocate(size):
        memory = torch.empty(max(size, 1), dtype=torch.uint8, device=x[0].device)
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(memory.data_ptr(), size, memory), 0)

    arrays = [cupy.asarray(t) for t in x]

    def call(i):
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        with stream, cupy.cuda.using_allocator(allocate):
            return function(cupy, arrays[i])

    yield f"{name}CuPy {cupy.__version__}", call


def gelu_cupy(shape, dtype, device, sets):
    """A kernel for each op of the expression."""
    x = [normal(shape, dtype, device) for _ in range(sets)]
    function = lambda cupy, t: 0.5 * t * (1 + cupy.tanh(0.7978845608028654 * (t + 0.044715 * cupy.power(t, 3))))
    yield from in_cupy("", function, x)


def layer_norm(shape, dtype, device, sets):
    x = [normal(shape, dtype, device) for _ in range(sets)]
    weight, bias = (normal(shape[1:], dtype, device) for _ in range(2))
    function = lambda t: F.layer_norm(t, (shape[1],), weight, bias)
    fused = compiled(function)
    yield "F.layer_norm", lambda i: function(x[i])
    yield "F.layer_norm, compiled", lambda i: fused(x[i])


def ways(function, name, *operands):
    """A function of a set's operands, eager and compiled."""
    fused = compiled(function)
    of = lambda i: [one[i % len(one)] for one in operands]
    yield name, lambda i: function(*of(i))
    yield f"{name}, compiled", lambda i: fused(*of(i))


def of_rows(name, function):
    """A peer that computes `function` of a tensor, and of further vectors as long as its rows, as many as it takes."""
    vectors = function.__code__.co_argcount - 1

    def peer(shape, dtype, device, sets):
        x = [normal(shape, dtype, device) for _ in range(sets)]
        yield from ways(function, name, x, *([normal(shape[1:], dtype, device)] for _ in range(vectors)))

    return peer


def cross_entropy(shape, dtype, device, sets):
    x = [normal(shape, dtype, device) for _ in range(sets)]
    targets = [torch.randint(shape[1], shape[:1], device=device)]
    loss = lambda t, at: F.cross_entropy(t, at, reduction="none")
    yield from ways(loss, "F.cross_entropy", x, targets)
    if dtype != torch.float32:
        yield from ways(lambda t, at: loss(t.float(), at), "F.cross_entropy of f32", x, targets)


def gemv(shape, dtype, device, sets, kn=False):
    n, k = shape
    w = [normal((k, n) if kn else (n, k), dtype, device) for _ in range(sets)]
    x = normal((k,), dtype, device, 1 / math.sqrt(k))
    yield from ways(lambda u: torch.mv(u.t() if kn else u, x), "torch.mv", w)
    row = x.view(1, k)
    yield from ways(lambda u: torch.matmul(row, u if kn else u.t()), "torch.matmul", w)


def gemv_kn(*row):
    yield from gemv(*row, kn=True)


def sort(shape, dtype, device, sets):
    x = [normal(shape, dtype, device) for _ in range(sets)]
    yield "torch.sort", lambda i: torch.sort(x[i], 1)
    yield "torch.sort, stable", lambda i: torch.sort(x[i], 1, stable=True)

    def sorted_with_places(cupy, t):
        places = cupy.argsort(t, 1)
        return cupy.take_along_axis(t, places, 1), places

    yield from in_cupy("argsort, take_along_axis, ", sorted_with_places, x)


def cumsum(shape, dtype, device, sets):
    x = [normal(shape, dtype, device) for _ in range(sets)]
    yield from ways(lambda t: torch.cumsum(t, t.dim() - 1), "torch.cumsum", x)
    yield from in_cupy("cumsum, ", lambda cupy, t: cupy.cumsum(t, t.ndim - 1), x)


def histogram(shape, dtype, device, sets):
    x = [torch.randint(256, shape, device=device).to(dtype) for _ in range(sets)]
    yield "torch.histc", lambda i: torch.histc(x[i].float(), 256, 0, 256)
    ones = torch.ones(shape, dtype=torch.int32, device=device)
    yield "scatter_add_", lambda i: torch.zeros(256, dtype=torch.int32, device=device).scatter_add_(0, x[i].long(), ones)
    yield from in_cupy("bincount, ", lambda cupy, t: cupy.bincount(t, minlength=256), x)
    yield from in_cupy("histogram, ", lambda cupy, t: cupy.histogram(t, 256, (0, 256)), x)


def factors(shape, dtype, device, sets):
    m, n, k = shape
    left, right = (20, 20) if dtype == torch.int8 else (1, 1 / math.sqrt(k))
    x = [normal((m, k), dtype, device, left) for _ in range(sets)]
    w = [normal((k, n), dtype, device, right) for _ in range(sets)]
    return x, w


def products(x, w):
    if x[0].dtype == torch.int8:
        yield "torch._int_mm", lambda i: torch._int_mm(x[i], w[i])
    else:
        yield "torch.matmul", lambda i: torch.matmul(x[i], w[i])


def gemm(shape, dtype, device, sets):
    yield from products(*factors(shape, dtype, device, sets))


def gemm_nk(shape, dtype, device, sets):
    x, w = factors(shape, dtype, device, sets)
    yield from products(x, [one.t().contiguous().t() for one in w])


def scaled_mm(by_row, fast):
    """fp8 with scales; `fast`: sums are not promoted to f32."""

    def scaled(shape, dtype, device, sets):
        m, n, k = shape
        x = [normal((m, k), dtype, device) for _ in range(sets)]
        w = [normal((n, k), dtype, device).t() for _ in range(sets)]
        scales = (torch.rand((m, 1) if by_row else (), device=device), torch.rand((1, n) if by_row else (), device=device))
        kinds = {"out_dtype": torch.bfloat16, "use_fast_accum": fast}
        yield "torch._scaled_mm", lambda i: torch._scaled_mm(x[i], w[i], *scales, **kinds)

    return scaled


def linear_gelu_ways(shape, dtype, device, sets):
    x, w = factors(shape, dtype, device, sets)
    bias = normal(shape[1:2], dtype, device)
    function = lambda t, u: F.gelu(torch.addmm(bias, t, u), approximate="tanh")
    fused = compiled(function)
    return {
        "addmm, gelu": lambda i: function(x[i], w[i]),
        "addmm, gelu, compiled": lambda i: fused(x[i], w[i]),
        "_addmm_activation": lambda i: torch._addmm_activation(bias, x[i], w[i], use_gelu=True),
    }


def linear_gelu(*row):
    yield from linear_gelu_ways(*row).items()


def linear_gelu_eager(*row):
    yield "addmm, gelu", linear_gelu_ways(*row)["addmm, gelu"]


def linear_gelu_lt(*row):
    """cuBLASLt's epilogue alone."""
    yield "_addmm_activation", linear_gelu_ways(*row)["_addmm_activation"]


def rounded_left(shape, device, sets, left):
    """left(x) converted to bf16, times w; x is f32."""
    x, w = factors(shape, torch.float32, device, sets)
    w = [one.to(torch.bfloat16) for one in w]
    function = lambda t, u: torch.matmul(left(t).to(torch.bfloat16), u)
    fused = compiled(function)
    yield "to, matmul", lambda i: function(x[i], w[i])
    yield "to, matmul, compiled", lambda i: fused(x[i], w[i])


def linear_cast(shape, dtype, device, sets):
    yield from rounded_left(shape, device, sets, lambda t: t)


def linear_norm(shape, dtype, device, sets):
    weight, bias = (normal(shape[2:], torch.float32, device) for _ in range(2))
    for name, call in rounded_left(shape, device, sets, lambda t: F.layer_norm(t, shape[2:], weight, bias)):
        yield f"layer_norm, {name}", call


def linear_i8(shape, dtype, device, sets):
    """By bf16 weights: what dequantizing them in the kernel costs."""
    yield from gemm(shape, dtype, device, sets)


def linear_i4(shape, dtype, device, sets):
    yield from gemm(shape, dtype, device, sets)


def linear_i8_nk(shape, dtype, device, sets):
    yield from gemm_nk(shape, dtype, device, sets)


def grouped_mm(shape, dtype, device, sets):
    m, n, k, experts, *rows = shape
    ends = torch.tensor([*itertools.accumulate(rows)], dtype=torch.int32, device=device)
    x = [normal((m, k), dtype, device) for _ in range(sets)]
    w = [normal((experts, k, n), dtype, device) for _ in range(sets)]
    yield "torch._grouped_mm", lambda i: torch._grouped_mm(x[i], w[i], offs=ends)
    by_columns = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in w]
    yield "torch._grouped_mm, by columns", lambda i: torch._grouped_mm(x[i], by_columns[i], offs=ends)


def sdpa(shape, dtype, device, sets, causal=True, queries=None):
    """For [batch, positions, heads, width], with possibly fewer heads of keys and values, or fewer queries."""
    batch, positions, heads, width = shape[:4]
    of_keys = shape[4] if len(shape) > 4 else heads
    tensors = lambda count, rows: [normal((batch, count, rows, width), dtype, device) for _ in range(sets)]
    q, k, v = tensors(heads, queries or positions), tensors(of_keys, positions), tensors(of_keys, positions)
    grouped = {"enable_gqa": True} if of_keys < heads else {}

    def by(backend):
        def call(i):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q[i], k[i], v[i], is_causal=causal, **grouped)

        return call

    yield "SDPA, cuDNN", by(SDPBackend.CUDNN_ATTENTION)
    yield "SDPA, FlashAttention", by(SDPBackend.FLASH_ATTENTION)


def attention_causal(*row):
    yield from sdpa(*row)


def attention_full(*row):
    yield from sdpa(*row, causal=False)


def attention_gqa(*row):
    yield from sdpa(*row)


def attention_cached(*row):
    yield from sdpa(*row, causal=False, queries=16)


def attention_packed(*row):
    """Other kernels choose themselves whether heads that share keys are rows of one tile."""
    yield from sdpa(*row)


def attention_window(shape, dtype, device, sets):
    """The last 1024 positions: by a compiled kernel that skips keys that no query attends to, or by a causal one."""
    batch, positions, heads, width = shape
    q, k, v = ([normal((batch, heads, positions, width), dtype, device) for _ in range(sets)] for _ in range(3))
    seen = lambda b, h, i, j: (i >= j) & (i - j < 1024)
    blocks = create_block_mask(seen, None, None, positions, positions, device=device)
    compiled = torch.compile(flex_attention)
    yield "flex_attention", lambda i: compiled(q[i], k[i], v[i], block_mask=blocks)
    yield from sdpa(shape, dtype, device, sets)


OPS = {
    "rms_norm": of_rows("F.rms_norm", lambda t, weight: F.rms_norm(t, weight.shape, weight, 1e-5)),
    "softmax": of_rows("torch.softmax", lambda t: torch.softmax(t, 1)),
    "transpose": of_rows("t, contiguous", lambda t: t.t().contiguous()),
    "sum": of_rows("torch.sum", lambda t: torch.sum(t)),
    "scaled_mm_tensor": scaled_mm(False, False),
    "scaled_mm_row": scaled_mm(True, False),
    "scaled_mm_tensor_fast": scaled_mm(False, True),
    "scaled_mm_row_fast": scaled_mm(True, True),
} | {
    f.__name__: f
    for f in (copy, gelu, gelu_cupy, layer_norm, cross_entropy, gemv, gemv_kn, sort, cumsum, histogram)
    + (gemm, gemm_nk, linear_gelu, linear_gelu_eager, linear_gelu_lt, linear_cast, linear_norm, linear_i8, linear_i8_nk, linear_i4)
    + (grouped_mm, attention_causal, attention_full, attention_gqa, attention_packed, attention_window, attention_cached)
}


def prepare(request, device):
    """The row's workload and its description: the fastest of all ways that work here."""
    op, shape, dtype = request["op"], tuple(request["shape"]), TYPES[request["type"]]
    torch.set_float32_matmul_precision("high" if request["type"] == "tf32" else "highest")
    if model := MODELS.get(op.split("_")[0]):  # after it, the name of its size
        return model(shape, dtype, device, request["calls"]), model.way
    if op not in OPS and op not in PROGRAMS:
        raise ValueError(f"PyTorch's side has no '{op}'")
    best, reasons, launched, first = None, [], math.inf, 0
    for name, call in (OPS | PROGRAMS)[op](shape, dtype, device, request["sets"]):
        try:
            workload = Captured(call, request["sets"], request["calls"])
            milliseconds = sorted(workload.turn() for _ in range(5))[2]
            if op in PROGRAMS:  # one way may be the fastest in a graph, and another one launched by the host
                launched, first = min(launched, workload.launched()), max(first, workload.first)
        except Exception as reason:  # a way that this version or GPU does not support
            reasons.append(f"{name}: {reason}")
            continue
        if best is None or milliseconds < best[0]:
            best = (milliseconds, workload, name)
    if best is None:
        raise RuntimeError("; ".join(reasons) or "what it takes is not installed")
    best[1].least_launched, best[1].first = launched, first
    return best[1], best[2]


def main():
    device = sys.argv[1]
    if not torch.cuda.is_available():
        raise RuntimeError(f"PyTorch {torch.__version__} sees no GPU")
    torch.cuda.set_device(device)
    # Output of a compiler or a library must not mix with the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    answer = lambda **values: print(json.dumps(values), file=answers, flush=True)
    answer(name=f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    workload = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "prepare":
                workload = None  # its memory is needed
                gc.collect()  # a model that holds its own functions
                torch.cuda.empty_cache()
                torch.compiler.reset()  # beyond a number of shapes, a function that was compiled before would run eagerly
                workload, name = prepare(request, device)
                answer(peer=name, **({"first_ms": workload.first} if request["op"] in PROGRAMS else {}))
            elif request["do"] == "turn":
                turn = workload.turn()
                answer(**({"ways": turn} if isinstance(turn, dict) else {"ms": turn}))
            elif request["do"] == "launched":
                answer(ms=workload.launched())
            else:
                raise ValueError(f"'{request['do']}' is not to be done")
        except Exception as reason:
            answer(error=one_line(reason))


if __name__ == "__main__":
    try:
        with torch.inference_mode():
            main()
    except RuntimeError as reason:
        print(json.dumps({"error": str(reason)}), flush=True)
