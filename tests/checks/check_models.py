#!/usr/bin/env python3
"""Models through tessera.py: the text of the program `generate`, batches, copies, errors. Usage: check_models.py GENERATE MODEL OTHER_MODEL"""

import subprocess
import sys

import tessera

generate, folder, other_folder = sys.argv[1:]
prompt = "The cat sat on"


def refused(error, words, call):
    try:
        call()
    except error as raised:
        assert words in str(raised), f"{raised} does not say '{words}'"
    else:
        raise AssertionError(f"no error that says '{words}'")


def text_of(model, tokenizer, count, **sampling):
    session, ids = model.session(capacity=100), tokenizer.encode(prompt)
    new = ids
    for _ in range(count):
        session.append(new)
        new = session.sample(**sampling)
        ids += new
    return ids


device = tessera.Device("cpu")
tokenizer, model = tessera.Tokenizer(folder), tessera.Model(folder, device)
assert tokenizer.decode(tokenizer.encode("Größe: 3 €, ok")) == "Größe: 3 €, ok"
assert tokenizer.encode("") == [] and tokenizer.decode([]) == ""

for options, sampling in [(["--temp", "0"], {}),
                          (["--temp", "0.8", "-s", "7", "--top-k", "20"], dict(temperature=0.8, seed=7, top_k=20, top_p=0.95))]:
    command = [generate, "-q", "--device", "cpu", "--model", folder, "--repeat-penalty", "1", "-n", "20", "--print-ids", *options, prompt]
    ids = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert text_of(model, tokenizer, 20, **sampling) == [int(id) for id in ids.split()], options

assert b"".join(map(tokenizer.bytes_of, tokenizer.encode("Größe"))) == "Größe".encode()
assert model.end_tokens and all(0 <= token < model.vocabulary for token in model.end_tokens)

# Two texts at once, one of which is left out, and logits.
session = model.session(2, 50)
session.append([1, 2, 3], [4])
session.append([], [5, 6])
assert [session.length(0), session.length(1)] == [3, 3]
alone = model.session()
alone.append([4, 5, 6])
assert alone.length() == 3 and alone.sample()[0] == session.sample()[1]
logits = session.logits()
assert logits.shape == (2, model.vocabulary)
row = [logits[1, i] for i in range(model.vocabulary)]
assert row.index(max(row)) == alone.sample()[0]

session.copy(0, alone)
session.truncate(0, 2)
session.append([6], [])
assert session.sample()[0] == alone.sample()[0]
assert session.sample(streams=[3, 4], temperature=1.0) != session.sample(streams=[5, 6], temperature=1.0)

# The same bits alone, token by token, and beside another text, at once.
invariant = tessera.Model(folder, device, batch_invariant=True)
alone, beside = invariant.session(), invariant.session(2, 50)
for token in [4, 5, 6]:
    alone.append([token])
beside.append([7] * 20, [4, 5, 6])
of_one, of_two = alone.logits(), beside.logits()
assert all(of_one[0, i] == of_two[1, i] for i in range(invariant.vocabulary))

refused(tessera.Error, "no-such-folder", lambda: tessera.Model("no-such-folder", device))
refused(tessera.Error, "no-such-folder", lambda: tessera.Tokenizer("no-such-folder"))
refused(tessera.Error, "f33", lambda: tessera.Model(folder, device, "f33"))
refused(tessera.Error, "not in the vocabulary", lambda: session.append([model.vocabulary], []))
refused(ValueError, "a session of 2", lambda: session.append([1]))
refused(OverflowError, "32 bits", lambda: session.append([1 << 32], []))
refused(tessera.Error, "temperature", lambda: session.sample(temperature=-1))
refused(OverflowError, "32 bits", lambda: session.sample(top_k=1 << 32))
refused(OverflowError, "64 bits", lambda: session.sample(seed=-1))
refused(OverflowError, "64 bits", lambda: session.sample(streams=[0, 1 << 64]))
refused(tessera.Error, "at least 1 sequence", lambda: model.session(-1))
refused(tessera.Error, "negative", lambda: tokenizer.bytes_of(-1))
refused(TypeError, "top_q", lambda: session.sample(top_q=1))
refused(ValueError, "streams", lambda: session.sample(streams=[1]))
refused(IndexError, "no sequence 2", lambda: session.length(2))
refused(tessera.Error, "to be shortened", lambda: session.truncate(0, 9))
refused(tessera.Error, "no logits", lambda: model.session().sample())
refused(tessera.Error, "supports 1 to", lambda: model.session(1, model.positions + 1))
refused(tessera.Error, "at least 1 sequence", lambda: model.session(0))
refused(tessera.Error, "another model", lambda: tessera.Model(other_folder, device).session().copy(0, session))
assert session.length(0) == 3  # the errors changed nothing
del model  # a session keeps its model alive
session.append([1], [2])
print("ok")
