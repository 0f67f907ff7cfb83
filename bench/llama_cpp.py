#!/usr/bin/env python3
"""Compares GPT-2 on the CPU with llama.cpp, in turns: prompts of 128 tokens, and new tokens. Usage: bench/llama_cpp.py
LLAMA_BENCH [--json FILE]. LLAMA_BENCH is the program llama-bench, of a build for this CPU. The models are GPT-2 124M with
random weights, in f32 and f16, and the model that ships with Tessera; their GGUF files are made by the package `gguf`, which
needs NumPy. Prints a table of medians; FILE gets all figures."""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import gguf
    import numpy
except ImportError as error:
    sys.exit(f"llama_cpp.py: error: {error}; install the Python packages gguf and numpy")

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "samples/models/storyteller-6m"
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50257, "n_positions": 1024,
        "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}
PROMPT = 128


def random_weights(config, kind):
    """The tensors of a model, by their names in Hugging Face's files."""
    rng, width = numpy.random.default_rng(1), config["n_embd"]

    def matrix(rows, columns):
        return (rng.standard_normal((rows, columns), dtype=numpy.float32) * 0.02).astype(kind)

    def norm(name):
        return {name + ".weight": numpy.ones(width, kind), name + ".bias": numpy.zeros(width, kind)}

    tensors = {"wte.weight": matrix(config["vocab_size"], width), "wpe.weight": matrix(config["n_positions"], width), **norm("ln_f")}
    for layer in range(config["n_layer"]):
        tensors |= norm(f"h.{layer}.ln_1") | norm(f"h.{layer}.ln_2")
        for name, rows, columns in [("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                    ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width)]:
            tensors[f"h.{layer}.{name}.weight"] = matrix(rows, columns)
            tensors[f"h.{layer}.{name}.bias"] = numpy.zeros(columns, kind)
    return tensors


def write_folder(folder, config, tensors):
    header, at = {}, 0
    for name, values in tensors.items():
        kind = {"float32": "F32", "float16": "F16"}[values.dtype.name]
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(values.tobytes())
    (folder / "config.json").write_text(json.dumps(config))


def read_folder(folder):
    data = (folder / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    kinds = {"F32": numpy.float32, "F16": numpy.float16}
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            values = numpy.frombuffer(data[8 + size + first:8 + size + last], kinds[entry["dtype"]])
            tensors[name.removeprefix("transformer.")] = values.reshape(entry["shape"])
    return tensors


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


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    if done.returncode != 0:
        sys.exit(f"llama_cpp.py: error: {command[0]} failed: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout)


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
            ours, theirs = {"prompt": [], "new": []}, {"prompt": [], "new": []}
            for _ in range(options.rounds):  # in turns, since other programs may use the same memory
                for result in run([options.llama_bench, "-m", file, "-t", threads, "-p", str(PROMPT), "-n", str(new), "-r", "3", "-o", "json"]):
                    theirs["prompt" if result["n_prompt"] else "new"].append(result["avg_ts"])
                for result in run([options.tessera_bench, "-m", folder, "--device", "cpu", "-q", "-p", str(PROMPT), "-n", str(new), "-r", "3",
                                   "-o", "json"], TESSERA_THREADS=threads):
                    ours["prompt" if result["prompt"] else "new"].append(result["tokens_per_second"])
            for what in ("prompt", "new"):
                ratio = statistics.median(a / b for a, b in zip(ours[what], theirs[what]))
                rows.append({"name": f"{name}-{what}", "ours": ours[what], "llama_cpp": theirs[what], "ratio": ratio})
                print(f"{rows[-1]['name']:24} ours {statistics.median(ours[what]):9.1f}   llama.cpp {statistics.median(theirs[what]):9.1f}   "
                      f"ratio {ratio:.2f}", flush=True)
    if options.json:
        cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
        options.json.write_text(json.dumps({"command": "bench/llama_cpp.py", "commit": commit, "cpu": cpu, "threads": options.threads,
                                            "unit": "tokens per second, a mean of three repetitions for each round", "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
