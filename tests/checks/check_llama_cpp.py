#!/usr/bin/env python3
"""Compares a GGUF model with llama.cpp: tokens of prompts, and at each position of llama.cpp's own greedy text the best
token. Usage: tests/checks/check_llama_cpp.py MODEL.gguf [--bin build/release/bin] [--device auto] [--tokens 200]
[--prompts 20] [--dtype f32] [--model-of-ours PATH] [--json FILE]

llama.cpp continues each prompt, in the model's chat format if it has ChatML's tokens. The program score computes the
logits of the same tokens. A position agrees if the best tokens are the same; otherwise our best token must be within 0.5
nat of llama.cpp's best, by its own logits: its products round activations to 8 bits. The exit status is 0 if 99 % agree
and all others are within that. Needs the Python packages llama-cpp-python and NumPy. --model-of-ours compares another
file or folder of the same model, such as one that the program convert made."""

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import llama_cpp
    import numpy
except ImportError as error:
    sys.exit(f"check_llama_cpp.py: error: {error}; install the Python packages llama-cpp-python and numpy")

AGREE, NATS = 0.99, 0.5
PROMPTS = (
    "What is the capital of France?", "Explain photosynthesis in two sentences.", "Write a short poem about the sea.",
    "List three fruits that are red.", "Who wrote Romeo and Juliet?", "How do I boil an egg?",
    "Tell me a story about a dragon and a baker.", "What is 12 times 12?", "Give me advice for a job interview.",
    "Translate 'good morning' into Spanish.", "Why is the sky blue?", "Write a Python function that adds two numbers.",
    "What are the benefits of exercise?", "Describe a rainy day in a city.", "Name the planets of the solar system.",
    "How does a bicycle stay upright?", "Suggest a name for a grey cat.", "What is machine learning?",
    "Write an email that asks for a day off.", "Summarize the plot of Cinderella.",
)


def logits_of(score, model, ids, options):
    """Our logits at each position, [tokens,vocabulary]."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "logits.safetensors"
        subprocess.run([score, "-q", "--json", "--model", model, "--dtype", options.dtype, "--device", options.device, "--logits", file,
                        "--ids", ",".join(map(str, ids))], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        content = file.read_bytes()
        size = struct.unpack("<Q", content[:8])[0]
        shape = json.loads(content[8:8 + size])["logits"]["shape"]
        return numpy.frombuffer(content, numpy.float32, offset=8 + size).reshape(shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--bin", type=Path, default=Path(__file__).parents[2] / "build/release/bin")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--model-of-ours", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    ours = options.model_of_ours or options.model
    peer = llama_cpp.Llama(str(options.model), n_ctx=1024, logits_all=True, verbose=False)
    chats = len(peer.tokenize(b"<|im_start|>", add_bos=False, special=True)) == 1
    rows, same, positions, worst = [], 0, 0, 0.0
    for prompt in PROMPTS[:options.prompts]:
        text = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n" if chats else prompt
        ids = peer.tokenize(text.encode(), add_bos=peer.metadata.get("tokenizer.ggml.add_bos_token") == "true", special=True)
        answer = subprocess.run([options.bin / "tokenize", "--tokenizer", ours, "--", text], check=True, capture_output=True, text=True)
        tokens_equal = json.loads(answer.stdout) == ids
        prompt_length = len(ids)
        peer.reset()
        peer.eval(ids)
        for _ in range(options.tokens):  # also behind the end of the turn
            ids.append(int(peer.scores[len(ids) - 1].argmax()))
            peer.eval(ids[-1:])
        theirs = peer.scores[prompt_length - 1:len(ids) - 1].astype(numpy.float64)
        best = theirs.argmax(1)
        chosen = logits_of(options.bin / "score", ours, ids, options)[prompt_length - 1:len(ids) - 1].argmax(1)
        gaps = theirs[numpy.arange(len(best)), best] - theirs[numpy.arange(len(best)), chosen]
        rows.append({"prompt": prompt, "tokens_equal": tokens_equal, "same": int((chosen == best).sum()), "of": len(best), "worst": float(gaps.max())})
        same, positions, worst = same + rows[-1]["same"], positions + len(best), max(worst, rows[-1]["worst"])
        print(f"{rows[-1]['same']:5} of {len(best)}  worst {gaps.max():.3f} nat  {'' if tokens_equal else 'OTHER TOKENS  '}{prompt}", flush=True)
    good = all(row["tokens_equal"] for row in rows) and same >= AGREE * positions and worst <= NATS
    print(f"{same} of {positions} ({100 * same / positions:.2f} %) have llama.cpp's best token, the others are within {worst:.3f} nat: "
          f"{'agrees' if good else 'DOES NOT AGREE'}")
    if options.json:
        options.json.write_text(json.dumps({"llama_cpp": llama_cpp.__version__, "model": options.model.name, "rows": rows}, indent=1) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
