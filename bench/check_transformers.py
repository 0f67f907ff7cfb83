"""Compares Tessera with transformers: logits in f32 with those of transformers in f64, and greedy tokens.

Usage: python3 bench/check_transformers.py [--family gpt2] [--bin build/release/bin] [--device auto] [--seed 0] [--small]

transformers makes and saves a GPT-2 124M, or with --family llama a SmolLM2 135M, with random weights; the programs score
and generate read it. The exit status is 0 if everything agrees. Needs torch, transformers and safetensors; a GPU makes it
faster. --small: a tiny model.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

ALLOWED = 2e-5  # relative to the norm of all logits
LENGTHS = (1, 7, 64, 1000, 1024)
GREEDY = 64


def gpt2(small):
    sizes = {"n_layer": 2, "n_embd": 48, "n_head": 4, "vocab_size": 500} if small else {}
    # No token ends a text: greedy decoding must continue.
    return GPT2LMHeadModel, GPT2Config(bos_token_id=None, eos_token_id=None, attn_implementation="eager", **sizes)


def llama(small):
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size")
    sizes = dict(zip(names, (2, 48, 4, 2, 100, 500) if small else (30, 576, 9, 3, 1536, 49152)))
    return LlamaForCausalLM, LlamaConfig(bos_token_id=None, eos_token_id=None, attn_implementation="eager",
                                         tie_word_embeddings=True, rope_theta=1e5, **sizes)


def compute_in_f64(model):
    """transformers computes norms and angles in f32, whatever the type of a Llama."""
    config = model.config
    half = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim

    def angles(x, position_ids):
        frequencies = (1e5 ** -half).to(x.device)
        both = (position_ids[..., None].double() * frequencies).repeat(1, 1, 2)
        return both.cos(), both.sin()

    model.model.rotary_emb.forward = angles
    for module in model.modules():
        if type(module).__name__ == "LlamaRMSNorm":
            module.forward = lambda x, norm=module: norm.weight * x * (x.square().mean(-1, keepdim=True) + config.rms_norm_eps).rsqrt()


def make_model(folder, seed, family, small):
    """Saves a random model; returns it in f64, on a GPU if there is one."""
    torch.manual_seed(seed)
    kind, config = family(small)
    model = kind(config).eval()
    with torch.no_grad():  # parameters that would hide a mistake if they stayed 0 or 1
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
            elif "layers" in name:
                parameter.mul_(3)  # else a Llama's greedy text repeats one token
        if kind is GPT2LMHeadModel:
            model.transformer.wpe.weight.mul_(20)  # the same
    model.save_pretrained(folder)
    if kind is LlamaForCausalLM:
        compute_in_f64(model)
    return model.double().to("cuda" if torch.cuda.is_available() else "cpu")


def run(program, arguments):
    command = [str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program.name} failed: {done.stderr.strip()}")
    return done.stdout


def commas(ids):
    return ",".join(map(str, ids))


def check_logits(model, ids, programs, common, folder):
    """Compares the logits of one text; true if they agree."""
    with torch.no_grad():
        expected = model(torch.tensor([ids], device=model.device)).logits[0].cpu()
    file = folder / "logits.safetensors"
    run(programs / "score", [*common, "--ids", commas(ids), "--logits", str(file)])
    ours = load_file(file)["logits"].double()
    error = ((ours - expected).norm() / expected.norm()).item()
    agrees = error <= ALLOWED  # false for NaN
    largest = (ours - expected).abs().max().item()
    print(f"{len(ids):5} tokens: relative error {error:.2e}, largest {largest:.2e}: {'right' if agrees else 'WRONG'}")
    return agrees


def greedy(model, prompt):
    """The most probable tokens after the prompt, and the margin of each over the next."""
    tokens, leads, cache, new = [], [], None, prompt
    for _ in range(GREEDY):
        with torch.no_grad():
            out = model(torch.tensor([new], device=model.device), past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        best = out.logits[0, -1].topk(2)
        tokens.append(best.indices[0].item())
        leads.append((best.values[0] - best.values[1]).item())
        new = tokens[-1:]
    return tokens, leads


def check_greedy(model, prompt, programs, common):
    expected, leads = greedy(model, prompt)
    text = run(programs / "generate", [*common, "--prompt-ids", commas(prompt), "--no-display-prompt", "--print-ids",
                                       "--temp", "0", "--repetition-penalty", "1", "-n", str(GREEDY)])
    ours = [int(token) for token in text.split()]
    if ours == expected:
        print(f"{GREEDY} greedy tokens, {len(set(expected))} of them different: right")
        return True
    first = next((i for i, pair in enumerate(zip(ours, expected)) if pair[0] != pair[1]), min(len(ours), GREEDY))
    lead = f", which is ahead by {leads[first]:.1e}" if first < GREEDY else ""
    print(f"greedy tokens: WRONG from step {first} on: {ours[first:first + 1]}, not {expected[first:first + 1]}{lead}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--bin", type=Path, default=root / "build/release/bin", help="folder of the programs")
    parser.add_argument("--device", default="auto", help="of the programs: auto, cpu, cuda or cuda:N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=("gpt2", "llama"), default="gpt2")
    parser.add_argument("--small", action="store_true", help="a tiny model")
    options = parser.parse_args()
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = make_model(folder, options.seed, {"gpt2": gpt2, "llama": llama}[options.family], options.small)
        generator = torch.Generator().manual_seed(options.seed)
        ids = torch.randint(model.config.vocab_size, (max(LENGTHS),), generator=generator).tolist()
        common = ["--model", name, "--device", options.device, "--dtype", "f32", "--quiet"]
        agree = [check_logits(model, ids[:length], options.bin, common, folder) for length in LENGTHS]
        agree.append(check_greedy(model, ids[:7], options.bin, common))
    sys.exit(not all(agree))


if __name__ == "__main__":
    main()
