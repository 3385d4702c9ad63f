#!/usr/bin/env python3
"""Are the tokens of leat those of Hugging Face's tokenizers, for texts of all planes of Unicode?

    tests/conformance/tokens.py build/release/tests/conformance/token_ids TOKENIZER.json [TEXTS [SEED]]

Needs the package tokenizers. Texts: letters of all planes and marks, runs of spaces and special tokens, emoji sequences and jamo, words and
code. Prints the first texts that differ, and how many do; exits with 1 where one does.
"""

import os
import pathlib
import random
import struct
import subprocess
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "data/tokenizers"))
import texts as made_texts  # noqa: E402

EMOJI = "😀👩👨👧\u200d\ufe0f🏽🇩🇪❤e\u0301\u0308ö한글\u1112\u1161\u11ab"
PARTS = ("a", "b", "é", " ", "  ", "     ", "\n", "\t", "\u3000", "\u00a0", "▁", "▁▁", "<unk>", "<s>", "[CLS]", "<0x41>", "1", "'", "``")


def some_text(draw):
    kind = draw.random()
    if kind < 0.4:
        return "".join(chr(draw.choice((draw.randrange(0, 0x300), draw.randrange(0x300, 0xd800), draw.randrange(0xe000, 0x20000),
                                        draw.randrange(0x300, 0x370), draw.randrange(0xe000, 0x110000), 0x20))) for _ in range(draw.randrange(1, 50)))
    if kind < 0.6:
        return "".join(draw.choice(PARTS) for _ in range(draw.randrange(1, 30)))
    if kind < 0.8:
        return "".join(draw.choice(EMOJI + chr(draw.randrange(0x1f300, 0x1fb00))) for _ in range(draw.randrange(1, 30)))
    return made_texts.texts(draw.randrange(1 << 30), 1)[0]


def main():
    program, path = sys.argv[1:3]
    count, seed = (int(each) for each in (sys.argv[3:] + ["10000", "1"][len(sys.argv) - 3:])[:2])
    draw = random.Random(seed)
    texts = [some_text(draw) for _ in range(count)]
    reference = Tokenizer.from_file(path)
    reference.encode_special_tokens = True
    given = b"".join(struct.pack("<I", len(each)) + each for each in (text.encode() for text in texts))
    made = memoryview(subprocess.run([program, path], input=given, stdout=subprocess.PIPE, check=True).stdout).cast("I")
    at, differ = 0, 0
    for text in texts:
        ids = made[at]
        ours = None if ids == 0xffffffff else list(made[at + 1:at + 1 + ids])
        at += 1 + (ids if ours is not None else 0)
        theirs = reference.encode(text).ids
        if ours != theirs:
            differ += 1
            if differ <= 3:
                print(f"{text!r}\n  leat       {ours}\n  tokenizers {theirs}")
    print(f"{pathlib.Path(path).name}: {count} texts, seed {seed}: {differ} differ")
    return differ != 0


if __name__ == "__main__":
    sys.exit(main())
