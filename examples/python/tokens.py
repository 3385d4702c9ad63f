"""Windows of a file of tokens, as for a language model: `x`, and `y`, which is one token further.

    python examples/python/tokens.py TOKENS.bin [u16|u32]

Needs pyleat and NumPy. `leat tokens TEXTS.jsonl --tokenizer tokenizer.json TOKENS.bin` makes such a file.
"""

import sys

import numpy

import pyleat as leat


def frequencies(path, dtype="u16"):
    windows = leat.cut_windows(leat.open_tokens(path, dtype=dtype), leat.Tokens(length=256, dtype="i64"))
    counts = numpy.zeros(0, numpy.int64)
    with leat.Loader(windows, leat.Tokens(length=256, dtype="i64"), batch_size=12, seed=7, to="numpy") as loader:
        for batch in loader:
            assert (batch["x"][:, 1:] == batch["y"][:, :-1]).all()
            found = numpy.bincount(batch["x"].ravel(), minlength=len(counts))
            found[:len(counts)] += counts
            counts = found
    for token in numpy.argsort(counts)[::-1][:10]:
        print(f"token {token}: {counts[token]} of {counts.sum()}")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    frequencies(*sys.argv[1:])
