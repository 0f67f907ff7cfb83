#!/usr/bin/env python3
"""Compares GPT-2 on the CPU with PyTorch, in turns: prompts of 128 tokens, and new tokens. Usage: bench/torch_cpu.py
[--json FILE]. The models are GPT-2 124M with random weights, in f32, f16 and bf16, and one of the sizes of the model that ships with
Tessera. PyTorch computes in the type of the weights or in f32, eagerly or through torch.compile; the fastest counts. In bf16 both
round activations, too; from f16 weights Tessera computes in f32. Prints a table of medians; FILE gets all figures."""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

try:
    import numpy
    import torch
    import torch.nn.functional as F
except ImportError as error:
    sys.exit(f"torch_cpu.py: error: {error}; install the Python packages torch and numpy")

import peer_models
from cpu_models import GPT2, PROMPT, ROOT, SHIPPED, ours, random_weights, write_folder, write_results


class Peer(peer_models.Gpt2):
    """One sequence with a cache. Its steps have tensors of constant extents, so that they can be compiled."""

    def __init__(self, config, room, dtype):
        size = [config[key] for key in ("n_layer", "n_embd", "n_head", "vocab_size", "n_positions")]
        super().__init__(1, room, size, dtype, "cpu")
        self.room = room

    def split(self, x):
        return x.reshape(1, x.shape[0], self.heads, -1).transpose(1, 2)

    def joined(self, y):
        return y.transpose(1, 2).reshape(y.shape[2], -1)

    def prompt(self, ids):
        """The token that follows."""

        def attend(layer, q, k, v):
            q, k, v = map(self.split, (q, k, v))
            keys, values = self.caches[layer]
            keys[:, :, :PROMPT], values[:, :, :PROMPT] = k, v
            return self.joined(F.scaled_dot_product_attention(q, k, v, is_causal=True))

        return self.logits(self.blocks_of(self.wte[ids] + self.wpe[:PROMPT], attend)[-1:]).argmax(dim=1)

    def token(self, id, at, seen, mask):
        """The token that follows the one at position `at`, which attends to the first `seen` positions. The mask [1,seen]
        is 0 for positions up to `at`, else -inf; None if `seen` is at + 1."""

        def attend(layer, q, k, v):
            q, k, v = map(self.split, (q, k, v))
            keys, values = self.caches[layer]
            keys.index_copy_(2, at, k)
            values.index_copy_(2, at, v)
            return self.joined(F.scaled_dot_product_attention(q, keys[:, :, :seen], values[:, :, :seen], attn_mask=mask))

        return self.logits(self.blocks_of(self.wte[id] + self.wpe[at], attend)).argmax(dim=1)

    @torch.inference_mode()
    def speeds(self, new, compiles, repetitions=3):
        """Tokens per second of a prompt, and of new tokens behind an empty text, as of throughput."""
        wrap = peer_models.compiled if compiles else lambda function: function
        prompt, token = wrap(self.prompt), wrap(self.token)
        ids = torch.arange(PROMPT) * 7919 % self.vocab
        masks = torch.triu(torch.full((self.room, self.room), float("-inf")), diagonal=1).to(self.wte.dtype)
        places = torch.arange(self.room).unsqueeze(1)

        def generate():
            id = ids[:1]
            for i in range(new):
                id = token(id, places[i], self.room, masks[i : i + 1]) if compiles else token(id, places[i], i + 1, None)

        def speed(run, tokens):
            run()
            begin = time.perf_counter()
            for _ in range(repetitions):
                run()
            return repetitions * tokens / (time.perf_counter() - begin)

        return {"prompt": speed(lambda: prompt(ids), PROMPT), "new": speed(generate, new)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tessera-bench", default=ROOT / "build/release/bin/throughput")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, kind, dtype, new in [("gpt2-f32", numpy.float32, torch.float32, 64), ("gpt2-f16", numpy.float16, torch.float16, 64),
                                       ("gpt2-bf16", numpy.float32, torch.bfloat16, 64),
                                       ("storyteller-f16", numpy.float16, torch.float16, 128)]:
            folder = Path(temporary) / name
            if name.startswith("gpt2"):
                folder.mkdir()
                config = GPT2
                write_folder(folder, config, random_weights(config, kind))
            else:
                folder, config = SHIPPED, json.loads((SHIPPED / "config.json").read_text())
            ways = [(each, compiles) for each in {dtype, torch.float32} for compiles in (False, True)]
            first = {way: Peer(config, max(PROMPT, new), way[0]).speeds(new, way[1], 1) for way in ways}
            best = {what: max(ways, key=lambda way: first[way][what]) for what in ("prompt", "new")}
            peers = {way: Peer(config, max(PROMPT, new), way[0]) for way in set(best.values())}
            of_us, theirs = {"prompt": [], "new": []}, {"prompt": [], "new": []}
            for _ in range(options.rounds):  # in turns, since other programs may use the same memory
                speeds = {way: peer.speeds(new, way[1]) for way, peer in peers.items()}
                computed = "bf16" if dtype == torch.bfloat16 else "f32"
                for what, speed in ours(options.tessera_bench, folder, new, str(options.threads), computed).items():
                    of_us[what].append(speed)
                    theirs[what].append(speeds[best[what]][what])
            for what in ("prompt", "new"):
                ratio = statistics.median(a / b for a, b in zip(of_us[what], theirs[what]))
                chosen, compiles = best[what]
                way = f"{str(chosen).removeprefix('torch.')}, {'torch.compile' if compiles else 'eager'}"
                rows.append({"name": f"{name}-{what}", "ours": of_us[what], "torch": theirs[what], "way": way, "ratio": ratio})
                print(f"{rows[-1]['name']:24} ours {statistics.median(of_us[what]):9.1f}   PyTorch {statistics.median(theirs[what]):9.1f}   "
                      f"ratio {ratio:.2f}   ({way})", flush=True)
    if options.json:
        write_results(options.json, f"bench/torch_cpu.py, PyTorch {torch.__version__}", options.threads, rows)


if __name__ == "__main__":
    main()
