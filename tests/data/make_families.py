"""Makes a small random model of each family, and its golden logits and texts, by transformers.

Usage: python3 tests/data/make_families.py [FOLDER]       needs torch and transformers 5; the tests need neither

Each model exercises the pieces that are named beside it. Weights are in bf16, so that they are exact in f32; logits are
computed from them in f64. rotary.json has frequencies of rotations with every kind of scaling.
"""

import json
import sys
from pathlib import Path

import torch
import transformers as hf
from make_models import logits_of, randomize
from safetensors.torch import save_file
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

DATA = Path(__file__).parent
LENGTH, PROMPT, GREEDY = 64, 7, 40

COMMON = {"vocab_size": 41, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": LENGTH,
          "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
GLU = {**COMMON, "intermediate_size": 56, "num_key_value_heads": 2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 40}
YARN = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 16}


def models():
    # Positions begin at row 2; ReLU.
    yield "opt", hf.OPTForCausalLM(hf.OPTConfig(**COMMON, ffn_dim=56, word_embed_proj_dim=32))
    # Llama 3's scaling; three heads share one of keys.
    yield "llama3", hf.LlamaForCausalLM(hf.LlamaConfig(
        **{**GLU, "hidden_size": 48, "num_attention_heads": 6}, rope_parameters=LLAMA3))
    # A window that is shorter than the text; three heads share one of keys.
    yield "mistral", hf.MistralForCausalLM(hf.MistralConfig(
        **{**GLU, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 16}, sliding_window=11))
    # Biases of QKV only; YaRN; a window from the second layer on.
    yield "qwen2", hf.Qwen2ForCausalLM(hf.Qwen2Config(
        **GLU, tie_word_embeddings=True, rope_parameters=YARN, use_sliding_window=True, sliding_window=5, max_window_layers=1))
    # A norm of each head of queries and keys.
    yield "qwen3", hf.Qwen3ForCausalLM(hf.Qwen3Config(**GLU, head_dim=12))
    # Weights of norms around 0; GeGLU; a factor of the embedding.
    yield "gemma", hf.GemmaForCausalLM(hf.GemmaConfig(**GLU, head_dim=8))
    # Caps of scores and logits; norms before and behind; windows in turn.
    yield "gemma2", hf.Gemma2ForCausalLM(hf.Gemma2Config(
        **GLU, head_dim=8, sliding_window=9, attn_logit_softcapping=3.0, final_logit_softcapping=7.0, query_pre_attn_scalar=20))
    # Two bases, of which one is scaled; norms of heads, before and behind; windows but for every third layer.
    yield "gemma3", hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(
        **{**GLU, "num_hidden_layers": 3}, head_dim=16, sliding_window=9, sliding_window_pattern=3, query_pre_attn_scalar=20,
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 700.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}))
    # Norms behind only; a norm of all heads of queries and keys.
    yield "olmo2", hf.Olmo2ForCausalLM(hf.Olmo2Config(**GLU))
    # A quarter of a head is rotated; QKV by head; attention beside the MLP.
    yield "pythia", hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**{**COMMON, "hidden_size": 48, "num_attention_heads": 3}, intermediate_size=56))
    # The same one after the other, with more of a head, and biases of the MLP only.
    yield "gpt-neox", hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(
        **COMMON, intermediate_size=56, use_parallel_residual=False, attention_bias=False,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}))


def make(folder, model):
    randomize(model)
    model.bfloat16().eval().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    # In f32 or above, factors such as that of the embedding have no error of bf16.
    model = type(model).from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    ids = torch.randint(0, model.config.vocab_size, (2, LENGTH), dtype=torch.int32)
    logits = logits_of(model, ids)
    text = ids[:1, :PROMPT].long()
    with torch.no_grad():
        while text.shape[1] < GREEDY:
            text = torch.cat([text, model(text).logits[:, -1:].argmax(-1)], 1)
    save_file({"ids": ids, "logits": logits, "greedy": text[0].int().contiguous()}, folder / "golden.safetensors")


def rotations():
    """Parameters of each kind of scaling, with the frequencies and the factor that they give."""
    cases = [
        {"rope_type": "linear", "factor": 8.0, "rope_theta": 10000.0},
        {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 500000.0,
         "original_max_position_embeddings": 8192},
        {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 0.5, "high_freq_factor": 9.0, "rope_theta": 300.0,
         "original_max_position_embeddings": 100},
        {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000000.0, "original_max_position_embeddings": 32768},
        {"rope_type": "yarn", "factor": 16.0, "rope_theta": 10000.0, "original_max_position_embeddings": 256, "beta_fast": 20.0,
         "beta_slow": 2.0, "truncate": False},
        {"rope_type": "yarn", "factor": 40.0, "rope_theta": 10000.0, "original_max_position_embeddings": 4096, "mscale": 0.707,
         "mscale_all_dim": 1.0},
        {"rope_type": "yarn", "factor": 3.0, "rope_theta": 10000.0, "original_max_position_embeddings": 64, "attention_factor": 1.25},
        {"rope_type": "yarn", "factor": 2.0, "rope_theta": 500.0, "original_max_position_embeddings": 128,
         "partial_rotary_factor": 0.5},
    ]
    for parameters in cases:
        config = hf.LlamaConfig(hidden_size=128, num_attention_heads=2, max_position_embeddings=4096, rope_parameters=dict(parameters))
        frequencies, factor = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config)
        yield {"parameters": parameters, "frequencies": [float(f"{f:.8g}") for f in frequencies.tolist()], "factor": factor}


def main():
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "families"
    torch.manual_seed(43)
    for name, model in models():
        make(to / name, model)
    (to / "rotary.json").write_text(json.dumps(list(rotations()), indent=1) + "\n")


if __name__ == "__main__":
    main()
