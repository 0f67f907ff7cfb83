"""Random texts that are hard for a tokenizer: all kinds of Unicode, white space, digits, contractions, added tokens."""

import random
import unicodedata

# PCRE2 10.42 knows Unicode 14, and so does Python 3.11; letters of later versions are cut differently, which is documented.
UNICODE = "14.0.0"

WHITE = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\v", "\f", " \n", "\n ", "\x85", "\u00a0", "\u1680", "\u2003", "\u2028",
         "\u2029", "\u202f", "\u3000", "\u180e", "\u200b", "\ufeff", "\x1c", "\x00"]
DIGITS = ["0", "7", "12", "123", "1234", "3.14", "1,000,000", "\u0663\u0664", "\u00b2", "\u00bd", "\u2167", "\u0967\u0968", "\U0001d7d8",
          "\u3007", "\u2460", "5th"]
WORDS = ["the", "The", " and", "I", "don", "once", "upon", "HTTPServer", "snake_case", "x", "caf\u00e9", "cafe\u0301", "\u212bngstr\u00f6m",
         "stra\u00dfe", "\u041c\u043e\u0441\u043a\u0432\u0430", "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "\u4f60\u597d",
         "\u65e5\u672c\u8a9e", "\ud55c\uad6d\uc5b4", "\u1112\u1161\u11ab", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a",
         "\ufb01n", "\u01c5", "\u1e9b\u0323", "\u0958"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'Ve", "'\u017f", "\u2019s", "''", "'", "'x", "'\u212a"]
MARKS = list("!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "--", "->", "\u2026", "\u2014", "\u20ac", "\u00a7", "\u00ab", "//", "/\n"]
EMOJI = ["\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\u263a"]
SPELLED = ["\u2581", "\u2581\u2581", "\u0120", "\u010a", "<0x41>", "<0x0A>", "<0xE2>", "<", "</", "<|", "|>", "<s", "s>"]
# Characters of Unicode 10 to 14 that tokenizers 0.23, with the data of Unicode 9, does not normalize.
NEWER = [(0x7fd, 0x7fe), (0x898, 0x8a0), (0x8ca, 0x8d4), (0x9fe, 0x9ff), (0xc3c, 0xc3d), (0xd3b, 0xd3d), (0xeba, 0xebb), (0x1715, 0x1716),
         (0x1abf, 0x1acf), (0x1df6, 0x1dfb), (0x32ff, 0x3300), (0xa7f2, 0xa7f5), (0xa82c, 0xa82d), (0xab69, 0xab6a), (0x10781, 0x10786),
         (0x10787, 0x107b1), (0x107b2, 0x107bb), (0x10d24, 0x10d28), (0x10eab, 0x10ead), (0x10f46, 0x10f51), (0x10f82, 0x10f86),
         (0x11070, 0x11071), (0x1133b, 0x1133c), (0x1145e, 0x1145f), (0x11839, 0x1183b), (0x11938, 0x11939), (0x1193d, 0x1193f),
         (0x11943, 0x11944), (0x119e0, 0x119e1), (0x11a34, 0x11a35), (0x11a47, 0x11a48), (0x11a99, 0x11a9a), (0x11d42, 0x11d43),
         (0x11d44, 0x11d46), (0x11d97, 0x11d98), (0x16ff0, 0x16ff2), (0x1e130, 0x1e137), (0x1e2ae, 0x1e2af), (0x1e2ec, 0x1e2f0),
         (0x1f16c, 0x1f16d), (0x1fbf0, 0x1fbfa)]
RANGES = [(0x20, 0x7f), (0, 0x20), (0x80, 0x250), (0x250, 0x370), (0x300, 0x370), (0x370, 0x600), (0x600, 0x1100), (0x1100, 0x1200),
          (0x1200, 0x2000), (0x2000, 0x2c00), (0x2c00, 0x3100), (0x3100, 0xa000), (0xa000, 0xac00), (0xac00, 0xd800), (0xe000, 0x10000),
          (0x10000, 0x12000), (0x1b000, 0x20000), (0x20000, 0x32000), (0xe0000, 0xe0200), (0x10000, 0x110000)]


def character(source):
    while True:
        low, high = source.choice(RANGES)
        code = source.randrange(low, high)
        if any(first <= code < end for first, end in NEWER):
            continue
        if not 0xd800 <= code < 0xe000 and unicodedata.category(chr(code)) != "Cn":
            return chr(code)


def part(source, added):
    kind = source.random()
    if kind < 0.3:
        return character(source)
    if kind < 0.45:
        return source.choice(WHITE)
    if kind < 0.55 and added:
        token = source.choice(added)
        cut = source.randrange(len(token) + 1)
        return source.choice([token, token, token + " ", " " + token, token[:cut], token[cut:], token[:cut] + " " + token[cut:], token * 2])
    return source.choice(source.choice([DIGITS, WORDS, CONTRACTIONS, MARKS, EMOJI, SPELLED, WORDS, WHITE]))


def texts(seed, count, added, most=24):
    """`count` texts; `added` are the tokens that are spelled out in them, whole and in halves."""
    if unicodedata.unidata_version != UNICODE:
        raise SystemExit(f"random_texts.py needs Python 3.11, which has Unicode {UNICODE}")
    source = random.Random(seed)
    return ["".join(part(source, added) for _ in range(source.randrange(most + 1))) for _ in range(count)]
