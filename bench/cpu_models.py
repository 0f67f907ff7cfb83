"""The models of llama_cpp.py and torch_cpu.py, which compare them on the CPU with other programs, and what both need."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy

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


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    if done.returncode != 0:
        sys.exit(f"error: {command[0]} failed: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout)


def ours(program, folder, new, threads, dtype="f32"):
    """Tokens per second of a prompt and of new tokens, with operands of that type."""
    results = run([program, "-m", folder, "--device", "cpu", "--dtype", dtype, "-q", "-p", str(PROMPT), "-n", str(new), "-r", "3", "-o", "json"],
                  TESSERA_THREADS=threads)
    return {"prompt" if result["prompt"] else "new": result["tokens_per_second"] for result in results}


def write_results(path, command, threads, rows):
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    path.write_text(json.dumps({"command": command, "commit": commit, "cpu": cpu, "threads": threads,
                                "unit": "tokens per second, a mean of three repetitions for each round", "rows": rows}, indent=1) + "\n")
