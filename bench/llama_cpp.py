#!/usr/bin/env python3
"""Compares GPT-2 on the CPU with llama.cpp, in turns: prompts of 128 tokens, and new tokens. Usage: bench/llama_cpp.py
LLAMA_BENCH [--json FILE]. LLAMA_BENCH is the program llama-bench, of a build for this CPU. The models are GPT-2 124M with
random weights, in f32 and f16, and the model that ships with Tessera; their GGUF files are made by the package `gguf`, which
needs NumPy. Prints a table of medians; FILE gets all figures."""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

try:
    import gguf
    import numpy
except ImportError as error:
    sys.exit(f"llama_cpp.py: error: {error}; install the Python packages gguf and numpy")

from cpu_models import GPT2, PROMPT, ROOT, SHIPPED, ours, random_weights, read_folder, run, write_folder, write_results


def write_gguf(path, config, tensors, kind):
    """The same model for llama.cpp: matrices of `kind`, [out,in], all else f32."""
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_context_length(config["n_positions"])
    writer.add_embedding_length(config["n_embd"])
    writer.add_block_count(config["n_layer"])
    writer.add_feed_forward_length(4 * config["n_embd"])
    writer.add_head_count(config["n_head"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    writer.add_file_type(1 if kind == numpy.float16 else 0)
    texts = {number: text for text, number in json.loads((SHIPPED / "vocab.json").read_text()).items()}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([texts.get(i, f"<unused{i}>").encode() for i in range(config["vocab_size"])])
    writer.add_token_types([1] * config["vocab_size"])
    writer.add_token_merges([line for line in (SHIPPED / "merges.txt").read_text().splitlines() if line and line[0] != "#"])
    writer.add_eos_token_id(0)

    def add(name, values, is_matrix=False):
        writer.add_tensor(name, numpy.ascontiguousarray(values.astype(kind if is_matrix else numpy.float32)))

    add("token_embd.weight", tensors["wte.weight"], True)
    add("position_embd.weight", tensors["wpe.weight"])
    names = {"attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    for end in ("weight", "bias"):
        add(f"output_norm.{end}", tensors[f"ln_f.{end}"])
        for layer in range(config["n_layer"]):
            for ours, theirs in {"ln_1": "attn_norm", "ln_2": "ffn_norm"}.items():
                add(f"blk.{layer}.{theirs}.{end}", tensors[f"h.{layer}.{ours}.{end}"])
            for ours, theirs in names.items():
                add(f"blk.{layer}.{theirs}.{end}", tensors[f"h.{layer}.{ours}.{end}"].T, end == "weight")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("llama_bench")
    parser.add_argument("--tessera-bench", default=ROOT / "build/release/bin/throughput")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    threads = str(options.threads)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, kind, new in [("gpt2-f32", numpy.float32, 64), ("gpt2-f16", numpy.float16, 64), ("storyteller-f16", numpy.float16, 128)]:
            folder, file = Path(temporary) / name, Path(temporary) / f"{name}.gguf"
            if name.startswith("gpt2"):
                folder.mkdir()
                config, tensors = GPT2, random_weights(GPT2, kind)
                write_folder(folder, config, tensors)
            else:
                folder, config = SHIPPED, json.loads((SHIPPED / "config.json").read_text())
                tensors = read_folder(folder)
            write_gguf(file, config, tensors, kind)
            of_us, theirs = {"prompt": [], "new": []}, {"prompt": [], "new": []}
            for _ in range(options.rounds):  # in turns, since other programs may use the same memory
                for result in run([options.llama_bench, "-m", file, "-t", threads, "-p", str(PROMPT), "-n", str(new), "-r", "3", "-o", "json"]):
                    theirs["prompt" if result["n_prompt"] else "new"].append(result["avg_ts"])
                for what, speed in ours(options.tessera_bench, folder, new, threads).items():
                    of_us[what].append(speed)
            for what in ("prompt", "new"):
                ratio = statistics.median(a / b for a, b in zip(of_us[what], theirs[what]))
                rows.append({"name": f"{name}-{what}", "ours": of_us[what], "llama_cpp": theirs[what], "ratio": ratio})
                print(f"{rows[-1]['name']:24} ours {statistics.median(of_us[what]):9.1f}   llama.cpp {statistics.median(theirs[what]):9.1f}   "
                      f"ratio {ratio:.2f}", flush=True)
    if options.json:
        write_results(options.json, "bench/llama_cpp.py", options.threads, rows)


if __name__ == "__main__":
    main()
