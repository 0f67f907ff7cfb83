"""Makes the small random models of families, and their golden logits and texts, by transformers.

Usage: python3 tests/data/make_models.py [FOLDER]       needs torch and transformers; the tests need neither

llama-odd: heads share keys, head and embedding differ. llama-biases: biases, tied, heads wider than width / heads.
golden-scales of nano-odd: the same weights with another activation, and scores without the usual factor, by layer.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

DATA = Path(__file__).parent


def randomize(model):
    """Parameters that would hide a mistake if they stayed 0 or 1, or were small."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
            else:
                parameter.mul_(8)


def logits_of(model, ids):
    with torch.no_grad():
        return model.double()(ids.long()).logits.float().contiguous()


def make(folder, config, length):
    torch.manual_seed(17)
    config._attn_implementation = "eager"
    model = LlamaForCausalLM(config).eval()
    randomize(model)
    model.save_pretrained(folder)
    ids = torch.randint(0, config.vocab_size, (2, length), dtype=torch.int32)
    logits = logits_of(model, ids)
    text = ids[:1, :7].long()
    with torch.no_grad():
        while text.shape[1] < length:
            text = torch.cat([text, model(text).logits[:, -1:].argmax(-1)], 1)
    save_file({"ids": ids, "logits": logits, "greedy": text[0].int().contiguous()}, folder / "golden.safetensors")


def main():
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    common = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 0, "eos_token_id": 0}
    make(to / "llama-odd", LlamaConfig(vocab_size=101, hidden_size=48, intermediate_size=100, max_position_embeddings=37,
                                       rope_theta=500.0, **common), 37)
    make(to / "llama-biases", LlamaConfig(vocab_size=61, hidden_size=40, intermediate_size=72, max_position_embeddings=45,
                                          head_dim=16, attention_bias=True, mlp_bias=True, hidden_act="gelu",
                                          tie_word_embeddings=True, rms_norm_eps=1e-3, **common), 45)
    nano = DATA / "nano-odd"
    config = GPT2Config.from_pretrained(nano, activation_function="relu", scale_attn_weights=False,
                                        scale_attn_by_inverse_layer_idx=True, attn_implementation="eager")
    model = GPT2LMHeadModel.from_pretrained(nano, config=config).eval()
    ids = load_file(nano / "golden.safetensors")["ids"]
    save_file({"logits": logits_of(model, ids)}, to / "nano-odd" / "golden-scales.safetensors")


if __name__ == "__main__":
    main()
