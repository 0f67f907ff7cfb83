"""Tests of scripts/convert: `python3 bench/test_convert.py build/release/bin/score`; all but two need PyTorch"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")  # PyTorch's, of NumPy, which is not needed
try:
    import torch
except ImportError:
    torch = None

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts/convert"
ALLOWED = 2e-5  # of the norm of all logits
IDS = [1, 7, 30, 2, 2, 85, 0, 41, 13, 8]


def script():
    """scripts/convert as a module: a process for each checkpoint would load PyTorch each time."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("convert", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("convert", loader))
    loader.exec_module(module)
    return module


class Sizes:
    vocab, positions, width, layers, heads = 96, 24, 48, 2, 3


def nanogpt(bias=True, dtype=None):
    """A state dict as nanoGPT's GPT has it, of random weights that none of what is computed hides."""
    generator = torch.Generator().manual_seed(5)
    s = Sizes

    def random(*shape, scale):
        return (torch.randn(*shape, generator=generator) * scale).to(dtype or torch.float32)

    state = {"transformer.wte.weight": random(s.vocab, s.width, scale=0.5),
             "transformer.wpe.weight": random(s.positions, s.width, scale=0.5)}

    def norm(name):
        state[name + ".weight"] = 1 + random(s.width, scale=0.2)
        if bias:
            state[name + ".bias"] = random(s.width, scale=0.2)

    def linear(name, outputs, inputs):
        state[name + ".weight"] = random(outputs, inputs, scale=1.2 / math.sqrt(inputs))
        if bias:
            state[name + ".bias"] = random(outputs, scale=0.2)

    for i in range(s.layers):
        h = f"transformer.h.{i}."
        norm(h + "ln_1")
        linear(h + "attn.c_attn", 3 * s.width, s.width)
        linear(h + "attn.c_proj", s.width, s.width)
        norm(h + "ln_2")
        linear(h + "mlp.c_fc", 4 * s.width, s.width)
        linear(h + "mlp.c_proj", s.width, 4 * s.width)
    norm("transformer.ln_f")
    state["lm_head.weight"] = state["transformer.wte.weight"]
    return state


def mingpt():
    """The same for minGPT: a head of its own, and the masks."""
    state = nanogpt()
    state["lm_head.weight"] = torch.randn(Sizes.vocab, Sizes.width, generator=torch.Generator().manual_seed(6)) * 0.3
    mask = torch.tril(torch.ones(Sizes.positions, Sizes.positions)).view(1, 1, Sizes.positions, Sizes.positions)
    for i in range(Sizes.layers):
        state[f"transformer.h.{i}.attn.bias"] = mask
    return state


def first_mingpt():
    """The same under the names of its first version."""
    state = {}
    for name, tensor in mingpt().items():
        name = name.replace("transformer.h.", "blocks.").replace("transformer.", "")
        for new, old in (("ln_1", "ln1"), ("ln_2", "ln2"), ("c_fc", "0"), ("mlp.c_proj", "mlp.2"), ("c_proj", "proj"),
                         (".attn.bias", ".attn.mask"), ("wte.", "tok_emb."), ("lm_head", "head")):
            name = name.replace(new, old)
        if "c_attn" in name:
            for part, piece in zip(("query", "key", "value"), tensor.chunk(3)):
                state[name.replace("c_attn", part)] = piece.clone()
        elif name == "wpe.weight":
            state["pos_emb"] = tensor[None]
        else:
            state[name] = tensor
    return state


def checkpoint(state, **arguments):
    """As nanoGPT's training saves it."""
    s = Sizes
    model_args = {"n_layer": s.layers, "n_head": s.heads, "n_embd": s.width, "block_size": s.positions, "bias": True,
                  "vocab_size": s.vocab, "dropout": 0.1}
    return {"model": state, "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1e-3}]},
            "model_args": model_args | arguments, "iter_num": 10, "best_val_loss": torch.tensor(2.5),
            "config": {"out_dir": "out", "compile": True}}


def reference(state, activation):
    """Logits of IDS in double precision. Linear weights are [out, in]."""
    state = {name: tensor.double() for name, tensor in state.items()}
    s, t = Sizes, len(IDS)

    def linear(x, name):
        return x @ state[name + ".weight"].T + state.get(name + ".bias", 0)

    def norm(x, name):
        x = x - x.mean(-1, keepdim=True)
        x = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return x * state[name + ".weight"] + state.get(name + ".bias", 0)

    def gelu(x):
        if activation == "gelu":
            return x / 2 * (1 + torch.erf(x / math.sqrt(2)))
        return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    x = state["transformer.wte.weight"][IDS] + state["transformer.wpe.weight"][:t]
    future = torch.ones(t, t).triu(1).bool()
    for i in range(s.layers):
        h = f"transformer.h.{i}."
        parts = linear(norm(x, h + "ln_1"), h + "attn.c_attn").chunk(3, -1)
        q, k, v = (part.view(t, s.heads, -1).transpose(0, 1) for part in parts)
        scores = (q @ k.transpose(1, 2) / math.sqrt(s.width // s.heads)).masked_fill(future, -math.inf)
        x = x + linear((scores.softmax(-1) @ v).transpose(0, 1).reshape(t, -1), h + "attn.c_proj")
        x = x + linear(gelu(linear(norm(x, h + "ln_2"), h + "mlp.c_fc")), h + "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ state["lm_head.weight"].T


class Code:
    """What a pickle can do."""

    def __reduce__(self):
        return os.system, ("touch " + os.environ["MARK"],)


class Convert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        self.file, self.model = self.work / "ckpt.pt", self.work / "model"

    def run_script(self, *arguments, python=None, **environment):
        run = subprocess.run([python or sys.executable, SCRIPT, *arguments], capture_output=True, text=True,
                             env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environment)
        return run.returncode, run.stdout, run.stderr

    def refused(self, status, err, *words):
        self.assertEqual(status, 2, err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertTrue(err.startswith("convert: error: "), err)
        for word in words:
            self.assertIn(word, err)

    def test_help(self):
        status, out, _ = self.run_script("--help")
        self.assertEqual(status, 0)
        for word in ("--heads", "--activation", "--tokenizer", "--vocab", "--force", "June 2023"):
            self.assertIn(word, out)
        self.refused(*self.run_script(self.file)[::2], "DIR", "--help")

    def test_without_pytorch(self):
        (self.work / "torch.py").write_text("raise ImportError('none here')")
        status, _, err = self.run_script(self.file, self.model, PYTHONPATH=str(self.work))
        self.refused(status, err, "PyTorch is needed", "none here", "pip install torch")
        self.assertEqual(os.listdir(self.work), ["torch.py"])


@unittest.skipIf(torch is None, "PyTorch is not installed")
class WithPyTorch(Convert):
    test_help = test_without_pytorch = None  # once is enough

    @classmethod
    def setUpClass(cls):
        cls.script = script()

    def convert(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = self.script.main([str(self.file), str(self.model), *map(str, arguments)])
        return status, out.getvalue(), err.getvalue()

    def converted(self, content, *arguments):
        torch.save(content, self.file)
        status, out, err = self.convert(*arguments)
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(os.listdir(self.work)), ["ckpt.pt", "model"])
        return out

    def logits(self):
        file = self.work / "logits"
        run = subprocess.run([SCORE, "-q", "--device", "cpu", "--model", self.model, "--ids", ",".join(map(str, IDS)),
                              "--logits", file], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        data = file.read_bytes()
        file.unlink()
        size, = struct.unpack("<Q", data[:8])
        return torch.frombuffer(bytearray(data[8 + size:]), dtype=torch.float32).view(len(IDS), -1).double()

    def error(self, expected):
        return ((self.logits() - expected).norm() / expected.norm()).item()

    def check(self, state, activation):
        """The logits are the reference's, and the other activation's are not."""
        self.assertLess(self.error(reference(state, activation)), ALLOWED)
        other = {"gelu": "gelu_new", "gelu_new": "gelu"}[activation]
        self.assertGreater(self.error(reference(state, other)), 5 * ALLOWED)

    def config(self):
        return json.loads((self.model / "config.json").read_text())

    def test_nanogpt(self):
        state = nanogpt()
        out = self.converted(checkpoint({"_orig_mod." + name: tensor for name, tensor in state.items()}))
        self.assertIn("nanoGPT, 2 layers, 3 heads, width 48, 24 positions, 96 tokens, gelu, head tied", out)
        self.check(state, "gelu")
        self.assertIsNone(self.config()["eos_token_id"])  # as the vocabulary is not GPT-2's
        self.assertEqual(sorted(os.listdir(self.model)), ["config.json", "model.safetensors"])

    def test_nanogpt_without_bias_of_2022(self):
        state = nanogpt(bias=False)
        self.converted(checkpoint(state, bias=False), "--activation", "gelu_new")
        self.check(state, "gelu_new")

    def test_mingpt(self):
        state = mingpt()
        self.assertIn("minGPT, ", self.converted(state, "--heads", 3))
        self.check(state, "gelu_new")
        self.assertFalse(self.config()["tie_word_embeddings"])

    def test_mingpt_of_2020(self):
        self.assertIn("minGPT of 2020", self.converted(first_mingpt(), "--heads", 3))
        self.check(mingpt(), "gelu")

    def test_state_dict_alone_of_nanogpt(self):
        state = nanogpt(dtype=torch.float64)  # which becomes F32
        out = self.converted({"module." + name: tensor for name, tensor in state.items()}, "--heads", 3)
        self.assertIn("nanoGPT, ", out)
        self.check(state, "gelu")

    def test_half_precision_stays(self):
        state = nanogpt(dtype=torch.bfloat16)
        self.converted(checkpoint(state))
        self.assertLess(self.error(reference(state, "gelu")), ALLOWED)
        self.assertLess((self.model / "model.safetensors").stat().st_size, 2.2 * sum(t.numel() for t in state.values()))

    def test_vocabulary(self):
        state = mingpt()
        self.converted(state, "--heads", 3)
        whole = self.logits()
        self.assertEqual(self.convert("--heads", 3, "--vocab", 90, "--force")[0], 0)
        self.assertTrue(torch.equal(self.logits(), whole[:, :90]))

    def test_vocabulary_of_gpt2(self):
        state = nanogpt()
        state["transformer.wte.weight"] = state["lm_head.weight"] = torch.zeros(50304, Sizes.width)
        torch.save(checkpoint(state, vocab_size=50304), self.file)
        status, _, err = self.convert()
        self.assertEqual((status, err.count("\n")), (0, 1))
        self.assertIn("--vocab 50257", err)
        self.assertEqual(self.convert("--vocab", 50257, "--force")[::2], (0, ""))
        for name in ("config.json", "generation_config.json"):
            self.assertEqual(json.loads((self.model / name).read_text())["eos_token_id"], 50256)

    def test_tokenizer(self):
        tokenizer = self.work / "tokenizer"
        tokenizer.mkdir()
        torch.save(checkpoint(nanogpt()), self.file)
        self.faulty("vocab.json': no such file", arguments=["--tokenizer", tokenizer])
        (tokenizer / "merges.txt").write_text("#version: 0.2\n")
        for vocabulary, word in (("[]", "no vocabulary"), ("{", "no vocabulary"), ('{"a": 96}', "ids up to 96, and")):
            (tokenizer / "vocab.json").write_text(vocabulary)
            self.faulty(word, arguments=["--tokenizer", tokenizer])
        (tokenizer / "vocab.json").write_text('{"a": 0, "b": 95}')
        (tokenizer / "notes").write_text("")
        self.assertEqual(self.convert("--tokenizer", tokenizer)[0], 0)
        self.assertEqual(sorted(os.listdir(self.model)),
                         ["config.json", "merges.txt", "model.safetensors", "vocab.json"])

    def faulty(self, *words, arguments=()):
        """What is in the file is refused, and nothing is left."""
        before = sorted(os.listdir(self.work))
        status, out, err = self.convert(*arguments)
        self.refused(status, err, *words)
        self.assertEqual(out, "")
        self.assertEqual(sorted(os.listdir(self.work)), before)

    def faulty_content(self, content, *words, arguments=()):
        torch.save(content, self.file)
        self.faulty("ckpt.pt'", *words, arguments=arguments)

    def test_code_is_refused_and_not_run(self):
        os.environ["MARK"] = str(self.work / "ran")
        self.faulty_content({"model": nanogpt(), "config": Code()}, "pickled objects", "system", "model.state_dict()")
        self.faulty_content(torch.nn.Linear(2, 2), "pickled objects (torch.nn.modules.linear.Linear)")
        self.faulty_content({"model": nanogpt(), "config": Path("x")}, "pickled objects (pathlib")

    def test_other_files(self):
        self.faulty("no such file")
        self.file.mkdir()
        self.faulty("it is not a file")
        self.file.rmdir()
        torch.save(checkpoint(nanogpt()), self.file)
        whole = self.file.read_bytes()
        for data in (b"", b"hello", whole[:-100], whole[:1000], b"PK\3\4" + bytes(100), b"version https://git-lfs"):
            self.file.write_bytes(data)
            self.faulty("ckpt.pt'", "cannot read it as a checkpoint")

    def test_other_contents(self):
        state = nanogpt()
        self.faulty_content([1], "a list")
        self.faulty_content({}, "a dict with")
        self.faulty_content({"state_dict": state}, "a dict with 'state_dict'")
        self.faulty_content({"model": state}, "no 'model_args'")
        self.faulty_content({"model": state, "model_args": {"n_head": "3"}}, "model_args has a value that is neither")
        self.faulty_content({"conv.weight": torch.zeros(2, 2)}, "no 'transformer.wte.weight'", "'conv.weight'")
        self.faulty_content(state, "give --heads")
        self.faulty_content(state, "a multiple of the number of heads, which 5", arguments=["--heads", 5])
        self.faulty_content(checkpoint(state), "n_head 3, and --heads is 4", arguments=["--heads", 4])
        self.faulty_content(checkpoint(state, n_layer=3), "n_layer 3, but by the tensors it is 2")
        self.faulty_content(checkpoint(state, vocab_size=97), "vocab_size 97, but by the tensors it is 96")
        self.faulty_content(checkpoint(state, use_relu=True), "'use_relu'", "another model")
        self.faulty_content(checkpoint(nanogpt(bias=False)), "missing: 'transformer.h.0.attn.c_attn.bias'")
        for vocab in (0, 97):
            self.faulty_content(checkpoint(state), f"--vocab is {vocab}", "from 1 to 96", arguments=["--vocab", vocab])

    def test_other_weights(self):
        state = nanogpt()
        del state["transformer.h.1.ln_2.bias"]
        state["transformer.h.1.attn.rope"] = torch.zeros(3)
        state["transformer.wpe.weight"] = torch.zeros(24, 40)
        state["transformer.ln_f.bias"] = torch.zeros(48, dtype=torch.int32)
        self.faulty_content(checkpoint(state), "missing: 'transformer.h.1.ln_2.bias'; ",
                            "not known: 'transformer.h.1.attn.rope'; ", "transformer.wpe.weight [24, 40], not [24, 48]",
                            "of integers: 'transformer.ln_f.bias'")
        state = nanogpt()
        head, embedding = "lm_head.weight", "transformer.wte.weight"
        self.faulty_content(state | {"_orig_mod." + head: torch.zeros(96, 48)}, "'lm_head.weight' occurs twice")
        self.faulty_content(state | {head: torch.zeros(96, 47)}, "lm_head.weight [96, 47], not [96, 48]")
        self.faulty_content(state | {embedding: torch.zeros(1).expand(1 << 20, 1 << 20)}, "not a plain tensor")
        self.faulty_content(state | {embedding: torch.zeros(2, 2).to_sparse()}, "not a plain tensor")

    def test_what_is_there_stays(self):
        torch.save(checkpoint(nanogpt()), self.file)
        self.model.write_text("mine")
        self.faulty("exists and is not a folder", arguments=["--force"])
        self.model.unlink()
        self.model.mkdir()
        self.assertEqual(self.convert()[0], 0)  # an empty folder is taken
        whole = self.logits()
        self.faulty("has a model in it; --force replaces it")
        self.assertEqual(self.convert("--force", "--activation", "gelu_new")[0], 0)
        self.assertEqual(sorted(os.listdir(self.work)), ["ckpt.pt", "model"])
        self.assertFalse(torch.equal(whole, self.logits()))
        again = self.logits()
        torch.save({"model": 1}, self.file)
        self.faulty("a dict with 'model'", arguments=["--force"])
        self.assertTrue(torch.equal(again, self.logits()))
        (self.model / "notes").write_text("mine")
        self.faulty("more than a model in it, 'notes'", arguments=["--force"])
        self.model = self.work / "missing" / "model"
        self.faulty("missing': no such folder")

    def test_failed_write_leaves_nothing(self):
        torch.save(checkpoint(nanogpt()), self.file)
        self.model.mkdir()
        write = self.script.write_weights
        try:
            for error in (OSError(28, "No space left on device", "model.safetensors"), KeyboardInterrupt()):
                def fails(*_):
                    raise error
                self.script.write_weights = fails
                if isinstance(error, OSError):
                    self.faulty("'model.safetensors': No space left on device")
                else:
                    self.assertRaises(KeyboardInterrupt, self.convert)
                self.assertEqual(sorted(os.listdir(self.work)), ["ckpt.pt", "model"])
                self.assertEqual(os.listdir(self.model), [])
        finally:
            self.script.write_weights = write

    def test_as_a_program(self):
        torch.save(checkpoint(nanogpt()), self.file)
        status, out, err = self.run_script(self.file, self.model)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("nanoGPT", out)
        self.assertEqual(os.stat(self.model).st_mode & 0o777, 0o777 & ~os.umask(os.umask(0o22)))


if __name__ == "__main__":
    SCORE = Path(sys.argv.pop(1)).resolve()
    if torch is None:
        print("skipped: PyTorch is not installed, of which scripts/convert reads checkpoints")
    unittest.main()
