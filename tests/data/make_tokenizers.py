"""Trains a small tokenizer for each family, by Hugging Face's tokenizers, with golden ids.

Usage: python3 tests/data/make_tokenizers.py [FOLDER]       needs tokenizers 0.23 and Python 3.11; the tests need neither

A family's vocabulary is small; its normalizer, pre-tokenizer, post-processor, decoder and added tokens are those of the real one.
texts.json has the texts; NAME.json has the tokenizer; NAME.golden.json has, for each text, 32 bits of hash of its ids, and of the text that
they decode to. parts.json has tokenizers that differ from a family's in one part.
"""

import copy
import json
import sys
from pathlib import Path

from random_texts import texts
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

DATA = Path(__file__).parent
ROOT = DATA.parent.parent
COUNT, PARTS = 3000, 250  # texts of a family, and of a tokenizer that differs in one part
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
FOREIGN = ("Größe, Straße, café, naïve, Ångström. Москва слезам не верит. Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم. "
           "你好,世界。日本語のテキスト。한국어 문장입니다. नमस्ते दुनिया। สวัสดีชาวโลก 😀😀👍 “quoted” — dash… 1234 5678 ")


def corpus():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorial").glob("*.md"))]
    return [page.read_text() for page in pages] + [FOREIGN] * 40


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


def template(*ids):
    names = [name for name, _ in ids]
    return {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": name, "type_id": 0}} for name in names] + [{"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in ids}}


def added(id, content, special=True, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special,
            **flags}


def trained(pre_tokenizer, size, special=(), alphabet=()):
    """Vocabulary and merges. `special` get the first ids."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), initial_alphabet=list(alphabet),
                                                                limit_alphabet=max(size // 3, 256), show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def of_bytes(splitter, special, size=700, **model):
    """A byte-level tokenizer; the special tokens come last, as Llama 3's and Qwen's do. No merge leads to the last token before them."""
    vocab, merges = trained(pre_tokenizers.Sequence([*splitter, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not splitter)]),
                            size, alphabet=pre_tokenizers.ByteLevel.alphabet())
    vocab["HTTPServer"] = len(vocab)
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(len(vocab) + i, token) for i, token in enumerate(special)],
            "normalizer": None, "pre_tokenizer": None, "post_processor": byte_level(True), "decoder": byte_level(True),
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": merges, **model}}


def of_characters(special, size=1000):
    """A tokenizer of SentencePiece's kind: special tokens, bytes, then pieces."""
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    vocab, merges = trained(pre_tokenizers.Metaspace(prepend_scheme="always"), size, [*special, *fallback])
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [added(vocab[token], token) for token in special],
            "normalizer": None, "pre_tokenizer": None, "post_processor": None,
            "decoder": sequence("decoders", {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                                {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}),
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": merges}}


def replace_blanks():
    return {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}


def llama2():
    made = of_characters(["<unk>", "<s>", "</s>"])
    made["normalizer"] = sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, replace_blanks())
    made["post_processor"] = template(("<s>", 1))
    return made


def mistral():
    made = of_characters(["<unk>", "<s>", "</s>", "[INST]", "[/INST]"])
    made["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    made["post_processor"] = template(("<s>", 1))
    return made


def gemma():
    made = of_characters(["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"])
    vocab = made["model"]["vocab"]
    for text in ("\n\n", "▁▁", "▁▁▁▁", "<td>"):  # pieces that are found first, as Gemma's runs of white space
        made["added_tokens"].append(added(vocab.setdefault(text, len(vocab)), text, special=False))
    made["normalizer"] = replace_blanks()
    made["pre_tokenizer"] = split({"String": " "}, "MergedWithPrevious")
    made["post_processor"] = template(("<bos>", 2))
    made["decoder"]["decoders"].pop()
    return made


def llama3():
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    made = of_bytes([pre_tokenizers.Split(regex(LLAMA3), "isolated")], special, ignore_merges=True)
    made["pre_tokenizer"] = sequence("pretokenizers", split({"Regex": LLAMA3}), byte_level(False))
    made["post_processor"] = sequence("processors", byte_level(True), template(("<|begin_of_text|>", made["added_tokens"][0]["id"])))
    return made


def qwen2():
    made = of_bytes([pre_tokenizers.Split(regex(QWEN2), "isolated")], ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    made["normalizer"] = {"type": "NFC"}
    made["pre_tokenizer"] = sequence("pretokenizers", split({"Regex": QWEN2}), byte_level(False))
    return made


def smollm():
    made = of_bytes([], ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"])
    made["pre_tokenizer"] = sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, byte_level(True))
    return made


def regex(pattern):
    from tokenizers import Regex
    return Regex(pattern)


FAMILIES = {f.__name__: f for f in (llama2, mistral, gemma, llama3, qwen2, smollm)}


def variants(families):
    """Tokenizers that differ from a family's in one part: name, family, changes."""
    byte, character = "smollm", "llama2"
    size = len(families[byte]["model"]["vocab"]) + len(families[byte]["added_tokens"])
    flagged = [added(size, "<l>", lstrip=True), added(size + 1, "<r>", rstrip=True), added(size + 2, "<w>", single_word=True),
               added(size + 3, "word", special=False, single_word=True), added(size + 4, "<both>", lstrip=True, rstrip=True),
               added(size + 5, "<bo", special=False), added(size + 6, "\u0958", special=False, normalized=True)]
    metaspace = {"type": "Metaspace", "replacement": "▁"}
    yield "flags", byte, {"added_tokens": families[byte]["added_tokens"] + flagged}
    yield "flags-nfc", byte, {"added_tokens": families[byte]["added_tokens"] + flagged, "normalizer": {"type": "NFC"}}
    for form in ("NFD", "NFKC", "NFKD"):
        yield form, byte, {"normalizer": {"type": form}}
    yield "prefix-space", byte, {"pre_tokenizer": {**byte_level(True), "add_prefix_space": True}}
    yield "digits", byte, {"pre_tokenizer": sequence("pretokenizers", {"type": "Digits", "individual_digits": False}, byte_level(True))}
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield f"{behavior}-{invert}", byte, {"pre_tokenizer": sequence(
                "pretokenizers", split({"Regex": r"\s|\d+"}, behavior, invert), byte_level(False))}
    yield "literal", byte, {"pre_tokenizer": sequence("pretokenizers", split({"String": "e"}, "MergedWithNext"), byte_level(False))}
    for scheme in ("always", "first", "never"):
        for whole in (False, True):
            part = {**metaspace, "prepend_scheme": scheme, "split": whole}
            yield f"metaspace-{scheme}-{whole}", character, {"normalizer": None, "pre_tokenizer": part, "decoder": part}
    model = families[character]["model"]
    yield "unknown", character, {"model": {**model, "byte_fallback": False}}
    yield "unknown-each", character, {"model": {**model, "byte_fallback": False, "fuse_unk": False}}
    yield "strip", character, {"decoder": sequence("decoders", {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                                   {"type": "Strip", "content": " ", "start": 1, "stop": 0}, {"type": "ByteFallback"},
                                                   {"type": "Fuse"})}
    yield "normalized-added", character, {"added_tokens": families[character]["added_tokens"] + [
        added(len(model["vocab"]), "New York", special=False, normalized=True), added(len(model["vocab"]) + 1, "<x>", normalized=True)]}
    special = families[byte]["added_tokens"][0]["id"]
    yield "suffix", byte, {"post_processor": {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [special], "tokens": ["<|endoftext|>"]}}}}


def changed(base, changes):
    made = copy.deepcopy(base)
    made.update(changes)
    return made


def hash_of(value):
    """FNV-1a."""
    hash = 0x811C9DC5
    for byte in value:
        hash = (hash ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{hash:08x}"


def decoded(tokenizer, text):
    """The text that the ids of a text decode to, without the tokens that every text begins with."""
    ids, inner = tokenizer.encode(text).ids, tokenizer.encode(text, add_special_tokens=False).ids
    around, space = tokenizer.encode(" ").ids, tokenizer.encode(" ", add_special_tokens=False).ids
    prefix = len(around) - len(space) if around[:len(space)] != space else 0
    assert ids[prefix:][:len(inner)] == inner
    return tokenizer.decode(ids[prefix:], skip_special_tokens=False)


def of_text(tokenizer, text):
    """Hashes of the ids and of the decoded text."""
    return hash_of(" ".join(map(str, tokenizer.encode(text).ids)).encode()) + hash_of(decoded(tokenizer, text).encode())


def tokens_of(families):
    return sorted({token["content"] for made in families.values() for token in made["added_tokens"]} |
                  {"<l>", "<r>", "<w>", "word", "<both>", "New York", "<x>"})


def main():
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "tokenizers"
    to.mkdir(exist_ok=True)
    families = {name: make() for name, make in FAMILIES.items()}
    golden = texts(1, COUNT, tokens_of(families))

    def write(name, value):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        (to / name).write_text(text + "\n")

    write("texts.json", golden)
    for name, made in families.items():
        write(f"{name}.json", made)
        tokenizer = Tokenizer.from_str(json.dumps(made))
        write(f"{name}.golden.json", "".join(of_text(tokenizer, text) for text in golden))
    parts = []
    for name, family, changes in variants(families):
        tokenizer = Tokenizer.from_str(json.dumps(changed(families[family], changes)))
        changes = {key: value for key, value in changes.items() if key != "model"} | (
            {"model": {key: value for key, value in changes["model"].items() if key not in ("vocab", "merges")}} if "model" in changes else {})
        parts.append({"name": name, "family": family, "changes": changes, "golden": "".join(of_text(tokenizer, text) for text in golden[:PARTS])})
    write("parts.json", parts)


if __name__ == "__main__":
    main()
