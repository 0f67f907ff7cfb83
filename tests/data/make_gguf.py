#!/usr/bin/env python3
"""Makes the GGUF files of the tests: tests/data/make_gguf.py [FOLDER]. Needs the Python packages gguf, NumPy, torch and
transformers.

blocks.gguf   random blocks of each type, and as F32 the values that gguf.quants makes of them; values in F32, and the
              Q8_0 blocks that it makes of these
llama.gguf    a random Llama of width 64 with matrices in Q8_0, Q4_0 and Q4_1; rows of queries and keys have the order
              of llama.cpp's converter
llama.safetensors   token ids, and the logits of its dequantized values, by transformers in f64"""

import json
import struct
import sys
from pathlib import Path

import gguf
import numpy
import torch
import transformers

DATA = Path(__file__).parent
TYPES = {"q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0, "q4_1": gguf.GGMLQuantizationType.Q4_1,
         "q4_k": gguf.GGMLQuantizationType.Q4_K, "q6_k": gguf.GGMLQuantizationType.Q6_K}


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_blocks(path):
    random = numpy.random.default_rng(43)
    writer = gguf.GGUFWriter(path, "blocks")
    for name, kind in TYPES.items():
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        rows, blocks = 3, 2 if elements == 256 else 6
        data = random.integers(0, 256, (rows, blocks, size), dtype=numpy.uint8)
        # Any bytes are a block. In two rows the scales are numbers of the size of weights', in the last they are any f16.
        places = {"q4_1": (0, 2), "q4_k": (0, 2), "q6_k": (208,)}.get(name, (0,))
        for place in places:
            scale = (random.standard_normal((2, blocks)) * 0.02).astype(numpy.float16)
            data[:2, :, place:place + 2] = scale.view(numpy.uint8).reshape(2, blocks, 2)
        data = data.reshape(rows, blocks * size)
        writer.add_tensor(name, data, raw_dtype=kind)
        with numpy.errstate(all="ignore"):
            values = gguf.quants.dequantize(data, kind)
        writer.add_tensor(name + ".values", numpy.ascontiguousarray(values.astype(numpy.float32)))
    values = (random.standard_normal((4, 96)) * 0.05).astype(numpy.float32)
    values[1, :32] = 0
    values[2, 32:64] = numpy.arange(-16, 16) / 2  # halves
    writer.add_tensor("plain", values)
    writer.add_tensor("plain.q8_0", gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    finish(writer)


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": {"int32": "I32", "float32": "F32"}[str(values.dtype)], "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(values.tobytes() for values in tensors.values()))


# Tensors of a layer, by their names in a Hugging Face folder.
NAMES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def named(name):
    """The name in GGUF."""
    name = name.removeprefix("model.")
    for ours, theirs in {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}.items():
        if name.startswith(ours + "."):
            return theirs + name[len(ours):]
    _, layer, rest = name.split(".", 2)
    part, ending = rest.rsplit(".", 1)
    return f"blk.{layer}.{NAMES[part]}.{ending}"


def interleaved(values, heads):
    """Rows of queries or keys as llama.cpp rotates them: elements that are rotated together are neighbors."""
    rest = values.shape[1:]
    return numpy.ascontiguousarray(values.reshape(heads, 2, values.shape[0] // heads // 2, *rest).swapaxes(1, 2).reshape(values.shape))


def write_llama(path, config, tensors, kind_of):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    theta = config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta", 10000.0)
    writer.add_rope_freq_base(theta)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    values_of = {}
    for name, values in tensors.items():
        target = named(name)
        heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}.get(target.split(".")[-2])
        ordered = interleaved(values, heads) if heads else values
        kind = kind_of(target, values)
        if kind is None:
            writer.add_tensor(target, numpy.ascontiguousarray(ordered.astype(numpy.float32)))
            values_of[name] = values.astype(numpy.float32)
        else:
            packed = gguf.quants.quantize(numpy.ascontiguousarray(ordered), kind)
            writer.add_tensor(target, packed, raw_dtype=kind)
            back = gguf.quants.dequantize(packed, kind)
            if heads:  # in the order of the folder
                rows = back.shape[0]
                back = back.reshape(heads, rows // heads // 2, 2, -1).swapaxes(1, 2).reshape(back.shape)
            values_of[name] = numpy.ascontiguousarray(back.astype(numpy.float32))
    finish(writer)
    return values_of


def make_quantized(folder):
    config = {"model_type": "llama", "vocab_size": 96, "max_position_embeddings": 48, "hidden_size": 64, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2, "head_dim": 16}
    random = numpy.random.default_rng(7)

    def matrix(rows, columns):
        return (random.standard_normal((rows, columns)) * 0.1).astype(numpy.float32)

    width, inner, keys = 64, 96, 32
    tensors = {"model.embed_tokens.weight": matrix(96, width)}
    for layer in range(2):
        prefix = f"model.layers.{layer}."
        shapes = {"self_attn.q_proj": (width, width), "self_attn.k_proj": (keys, width), "self_attn.v_proj": (keys, width),
                  "self_attn.o_proj": (width, width), "mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width),
                  "mlp.down_proj": (width, inner)}
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{prefix}{name}.weight"] = (1 + 0.1 * random.standard_normal(width)).astype(numpy.float32)
        for name, shape in shapes.items():
            tensors[f"{prefix}{name}.weight"] = matrix(*shape)
    tensors["model.norm.weight"] = (1 + 0.1 * random.standard_normal(width)).astype(numpy.float32)

    def kind_of(name, values):
        if values.ndim == 1:
            return None
        return {"token_embd": TYPES["q8_0"], "attn_q": TYPES["q4_1"], "attn_k": TYPES["q4_0"], "ffn_up": TYPES["q4_0"]}.get(
            name.split(".")[-2], TYPES["q4_1"])

    values = write_llama(folder / "llama.gguf", config, tensors, kind_of)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config, attn_implementation="eager")).double()
    missing = model.load_state_dict({name: torch.from_numpy(value).double() for name, value in values.items()}, strict=False)
    assert missing.missing_keys in ([], ["lm_head.weight"]) and not missing.unexpected_keys, missing
    model.tie_weights()
    ids = random.integers(0, config["vocab_size"], 24)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids)[None]).logits[0]
    write_safetensors(folder / "llama.safetensors", {"ids": ids.astype(numpy.int32), "logits": logits.float().numpy()})


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "gguf"
    make_blocks(folder / "blocks.gguf")
    make_quantized(folder)


if __name__ == "__main__":
    main()
