"""GPT-2 in PyTorch, for peer.py, and the functions that both need.

A model is made of the shape of a row of common/model_rows.cpp, followed by layers, width, heads, vocabulary and positions. Times are,
like ours, those of the host.
"""

import time

import torch
import torch.nn.functional as F


def normal(shape, dtype, device, deviation=1.0):
    return torch.randn(shape, device=device).mul_(deviation).to(dtype)


def one_line(reason):
    return str(reason).strip().replace("\n", " ") or repr(reason)


def compiled(function):
    """`function` through torch.compile, for extents that never change."""
    return torch.compile(function, dynamic=False)


class Gpt2:
    """GPT-2 with random weights and, if `capacity` is not 0, a static cache of so many positions."""

    def __init__(self, batch, capacity, size, dtype, device):
        layers, width, self.heads, self.vocab, positions = size
        matrix = lambda *extents: normal(extents, dtype, device, 0.02)
        zeros, ones = (lambda n, value=v: torch.full((n,), value, dtype=dtype, device=device) for v in (0.0, 1.0))
        self.width = width
        self.wte, self.wpe = matrix(self.vocab, width), matrix(positions, width)
        self.last_norm = (ones(width), zeros(width))
        self.blocks = [
            {
                "norm_1": (ones(width), zeros(width)),
                "qkv": (zeros(3 * width), matrix(width, 3 * width)),
                "project": (zeros(width), matrix(width, width)),
                "norm_2": (ones(width), zeros(width)),
                "up": (zeros(4 * width), matrix(width, 4 * width)),
                "down": (zeros(width), matrix(4 * width, width)),
            }
            for _ in range(layers)
        ]
        room = (batch, self.heads, capacity, width // self.heads)
        self.caches = [(normal(room, dtype, device), normal(room, dtype, device)) for _ in range(layers if capacity else 0)]

    def norm(self, x, parameters):
        return F.layer_norm(x, (self.width,), *parameters)

    def blocks_of(self, x, attend):
        """All layers, on x [rows, width]; attend(layer, q, k, v) is their attention, all [rows, width]."""
        for number, block in enumerate(self.blocks):
            q, k, v = torch.addmm(block["qkv"][0], self.norm(x, block["norm_1"]), block["qkv"][1]).chunk(3, dim=1)
            x = x + torch.addmm(block["project"][0], attend(number, q, k, v), block["project"][1])
            y = F.gelu(torch.addmm(block["up"][0], self.norm(x, block["norm_2"]), block["up"][1]), approximate="tanh")
            x = x + torch.addmm(block["down"][0], y, block["down"][1])
        return x

    def logits(self, x):
        return self.norm(x, self.last_norm) @ self.wte.t()

    def record(self, step, ahead=lambda: None):
        """One CUDA graph of `step`; `ahead` is called before each run."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                ahead()
                step()
        torch.cuda.current_stream().wait_stream(stream)
        ahead()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph

    def launched(self):
        return None


class Decode(Gpt2):
    """One CUDA graph per token of each sequence, which the host reads each time."""

    way = "CUDA graph of a token"

    def __init__(self, shape, dtype, device, calls):
        batch, self.cached, *size = shape
        # Space for the positions that the turn adds; those after the current one are masked.
        super().__init__(batch, self.cached + calls, size, dtype, device)
        self.calls = calls
        self.token = torch.zeros((batch,), dtype=torch.long, device=device)
        self.position = torch.zeros((1,), dtype=torch.long, device=device)
        self.reach = torch.arange(self.cached + calls, device=device)
        self.graph = self.record(self.step, lambda: self.position.fill_(self.cached))

    def step(self):
        split = lambda x: x.view(x.shape[0], self.heads, 1, -1)
        mask = (self.reach <= self.position).view(1, 1, 1, -1)

        def attend(number, q, k, v):
            keys, values = self.caches[number]
            keys.index_copy_(2, self.position, split(k))
            values.index_copy_(2, self.position, split(v))
            y = F.scaled_dot_product_attention(split(q), keys, values, attn_mask=mask)
            return y.reshape(q.shape)

        x = self.blocks_of(self.wte[self.token] + self.wpe[self.position], attend)
        self.token.copy_(self.logits(x).argmax(dim=1))
        self.position.add_(1)

    def turn(self):
        untimed = 5  # as ours
        self.position.fill_(self.cached - untimed)
        for i in range(-untimed, self.calls):
            if i == 0:
                start = time.perf_counter()
            self.graph.replay()
            self.token.tolist()
        return (time.perf_counter() - start) * 1e3 / self.calls


class Prompts(Gpt2):
    """Prompts of equal length at once, `calls` times a turn, each time from the host's tokens."""

    def __init__(self, shape, dtype, device, calls, cached):
        batch, self.length, *size = shape
        super().__init__(batch, self.length if cached else 0, size, dtype, device)
        self.calls = calls
        self.prompt = torch.tensor([[i * 7919 % self.vocab for i in range(self.length)]] * batch).pin_memory()
        self.tokens = torch.zeros((batch, self.length), dtype=torch.long, device=device)

    def last_layer(self):
        """x [rows, width] of all positions; the caches, if there are any, then hold all keys and values."""
        batch, length = self.tokens.shape
        split = lambda x: x.view(batch, length, self.heads, -1).transpose(1, 2)

        def attend(number, q, k, v):
            if self.caches:
                keys, values = self.caches[number]
                keys.copy_(split(k))
                values.copy_(split(v))
            y = F.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
            return y.transpose(1, 2).reshape(q.shape)

        return self.blocks_of((self.wte[self.tokens] + self.wpe[:length]).view(batch * length, -1), attend)

    def time(self, run, wait):
        total = 0
        for i in range(self.calls + 1):
            start = time.perf_counter()
            self.tokens.copy_(self.prompt, non_blocking=True)
            run()
            wait()
            total += (time.perf_counter() - start) * 1e3 if i > 0 else 0
        return total / self.calls


class Prefill(Prompts):
    """The token after each prompt: one CUDA graph, whose tokens the host reads."""

    way = "CUDA graph of the prompts"

    def __init__(self, shape, dtype, device, calls):
        super().__init__(shape, dtype, device, calls, cached=True)
        self.next = torch.zeros((len(self.tokens),), dtype=torch.long, device=device)
        self.graph = self.record(self.step)

    def step(self):
        last = self.last_layer().view(*self.tokens.shape, -1)[:, -1]
        self.next.copy_(self.logits(last).argmax(dim=1))

    def turn(self):
        return self.time(self.graph.replay, self.next.tolist)


class Logits(Prompts):
    """Logits at every position, left on the device, in each of PyTorch's ways, which are timed one after the other."""

    way = "GPT-2"

    def __init__(self, shape, dtype, device, calls):
        super().__init__(shape, dtype, device, calls, cached=False)
        fused, self.results, self.runs, self.failures = compiled(self.step), {}, {}, {}
        for name, step, is_graph in (
            ("eager", self.step, False),
            ("CUDA graph", self.step, True),
            ("compiled", fused, False),
            ("compiled CUDA graph", fused, True),
        ):
            keeping = lambda name=name, step=step: self.results.update({name: step()})  # as ours, they stay in memory
            try:
                self.runs[name] = self.record(keeping).replay if is_graph else keeping
                self.time(self.runs[name], torch.cuda.synchronize)
            except Exception as reason:  # a way that this version or GPU does not support
                self.runs.pop(name, None)
                self.failures[name] = one_line(reason)
        if not self.runs:
            raise RuntimeError("; ".join(f"{name}: {reason}" for name, reason in self.failures.items()))

    def step(self):
        return self.logits(self.last_layer())

    def turn(self):
        ways = {name: {"ms": self.time(run, torch.cuda.synchronize)} for name, run in self.runs.items()}
        return ways | {name: {"failure": reason} for name, reason in self.failures.items()}


MODELS = {"decode": Decode, "prefill": Prefill, "logits": Logits}
