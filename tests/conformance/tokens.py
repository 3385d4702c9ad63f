#!/usr/bin/env python3
"""Are the tokens of leat those of Hugging Face's tokenizers, of tiktoken and of SentencePiece, for texts of all planes of Unicode?

    tests/conformance/tokens.py build/release/tests/conformance/token_ids [--texts N] [--seed N] [TOKENIZER...]

A TOKENIZER is a tokenizer.json, a tokenizer.model or <encoding>.tiktoken. Default: those of tests/data/tokenizers, models of SentencePiece that
are trained here (unigram and bpe, with its normal forms), and tiktoken's encodings with tokens of ours. Needs the packages tokenizers,
sentencepiece and tiktoken; what is of a package that is not there is left out, by name.

Texts: letters of all planes and marks, runs of spaces and special tokens, emoji sequences and jamo, words and code, and long ones. Prints the first
texts that differ, and how many do; exits with 1 where one does.
"""

import argparse
import base64
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
data = pathlib.Path(__file__).resolve().parents[1] / "data/tokenizers"
sys.path.insert(0, str(data))
import texts as made_texts  # noqa: E402

EMOJI = "😀👩👨👧\u200d\ufe0f🏽🇩🇪❤e\u0301\u0308ö한글\u1112\u1161\u11ab"
PARTS = ("a", "b", "é", " ", "  ", "     ", "\n", "\t", "\u3000", "\u00a0", "▁", "▁▁", "<unk>", "<s>", "[CLS]", "<0x41>", "1", "'", "``", "ab", "abc", "<|end|>",
         "<b>", "\0", "\ufffd", "\u200b")
CHUNK = 20000


def some_text(draw):
    kind = draw.random()
    if kind < 0.01:
        return " ".join(made_texts.texts(draw.randrange(1 << 30), draw.randrange(2, 30)))
    if kind < 0.4:
        return "".join(chr(draw.choice((draw.randrange(0, 0x300), draw.randrange(0x300, 0xd800), draw.randrange(0xe000, 0x20000),
                                        draw.randrange(0x300, 0x370), draw.randrange(0xe000, 0x110000), 0x20))) for _ in range(draw.randrange(1, 50)))
    if kind < 0.6:
        return "".join(draw.choice(PARTS) for _ in range(draw.randrange(1, 30)))
    if kind < 0.8:
        return "".join(draw.choice(EMOJI + chr(draw.randrange(0x1f300, 0x1fb00))) for _ in range(draw.randrange(1, 30)))
    return made_texts.texts(draw.randrange(1 << 30), 1)[0]


def of_tokenizers(path):
    from tokenizers import Tokenizer
    reference = Tokenizer.from_file(str(path))
    reference.encode_special_tokens = True
    return lambda texts: [each.ids for each in reference.encode_batch(texts)]


def of_sentencepiece(path):
    import sentencepiece
    return sentencepiece.SentencePieceProcessor(model_file=str(path)).encode


def of_tiktoken(path):
    import tiktoken
    import tiktoken_ext.openai_public as public
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in path.read_bytes().splitlines())}
    # How a text is cut is the only thing that is asked of the encoding: its own tokens are not there to be downloaded.
    public.load_tiktoken_bpe = lambda *_, **__: {}
    cuts = getattr(public, path.stem)()["pat_str"]
    reference = tiktoken.Encoding(path.stem, pat_str=cuts, mergeable_ranks=ranks, special_tokens={})
    return lambda texts: [reference.encode_ordinary(each) for each in texts]


REFERENCES = {".json": of_tokenizers, ".model": of_sentencepiece, ".tiktoken": of_tiktoken}


def train(folder):
    """SentencePiece's kinds, by its own trainer."""
    import sentencepiece
    (folder / "text").write_text("\n".join(made_texts.texts(1, 3000)))
    for kind in ("unigram", "bpe"):
        for rule in ("nmt_nfkc", "nfkc_cf", "identity"):
            for with_bytes in (False, True):
                name = f"{kind}-{rule}{'-bytes' if with_bytes else ''}"
                sentencepiece.SentencePieceTrainer.train(
                    input=str(folder / "text"), model_prefix=str(folder / name), model_type=kind, normalization_rule_name=rule, byte_fallback=with_bytes,
                    vocab_size=2000, hard_vocab_limit=False, character_coverage=0.98, minloglevel=2, user_defined_symbols=["<|end|>", "ab"] if with_bytes else [],
                    remove_extra_whitespaces=rule != "identity", num_threads=1)
                yield folder / f"{name}.model"


def ranked(folder):
    """tiktoken's encodings, with the tokens of llama3.json."""
    import tiktoken  # noqa: F401
    of_letter, further = {}, 256
    for byte in range(256):
        shown = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        of_letter[chr(byte if shown else further)] = byte
        further += not shown
    vocabulary = json.loads((data / "llama3.json").read_text())["model"]["vocab"]
    for name in ("cl100k_base", "o200k_base", "r50k_base"):
        (folder / f"{name}.tiktoken").write_text("".join(
            f"{base64.b64encode(bytes(of_letter[letter] for letter in token)).decode()} {rank}\n" for token, rank in vocabulary.items()))
        yield folder / f"{name}.tiktoken"


def usual(folder):
    yield from sorted(each for each in data.iterdir() if each.suffix == ".model" or each.suffix == ".json" and each.name not in ("expected.json", "chats.json"))
    for make in (train, ranked):
        try:
            yield from make(folder)
        except ImportError as missing:
            print(f"left out: {make.__name__}: no package {missing.name}")


def ids_of(program, path, texts):
    given = b"".join(struct.pack("<I", len(each)) + each for each in (text.encode() for text in texts))
    made = memoryview(subprocess.run([program, str(path)], input=given, stdout=subprocess.PIPE, check=True).stdout).cast("I")
    at = 0
    for _ in texts:
        count = made[at]
        # One that was refused has another number of tokens than any.
        yield None if count == 0xffffffff else list(made[at + 1:at + 1 + count])
        at += 1 + (count if count != 0xffffffff else 0)


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("program")
    asked.add_argument("tokenizers", nargs="*", type=pathlib.Path)
    asked.add_argument("--texts", type=int, default=10000)
    asked.add_argument("--seed", type=int, default=1)
    how = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        references = {}
        for path in how.tokenizers or usual(pathlib.Path(folder)):
            try:
                references[path] = REFERENCES[path.suffix](path)
            except ImportError as missing:
                print(f"left out: {path.name}: no package {missing.name}")
        differ = dict.fromkeys(references, 0)
        begin = time.monotonic()
        for done in range(0, how.texts, CHUNK):
            draw = random.Random(f"{how.seed} {done}")
            texts = [some_text(draw) for _ in range(min(CHUNK, how.texts - done))]
            for path, reference in references.items():
                for text, ours, theirs in zip(texts, ids_of(how.program, path, texts), reference(texts)):
                    if ours == theirs:
                        continue
                    differ[path] += 1
                    if differ[path] <= 3:
                        print(f"{path.name}: {text!r}\n  leat      {ours}\n  reference {theirs}", flush=True)
            if how.texts > CHUNK:
                print(f"{done + len(texts)} texts, {time.monotonic() - begin:.0f} s, differ: {sum(differ.values())}", file=sys.stderr, flush=True)
        for path, count in differ.items():
            print(f"{path.name}: {how.texts} texts, seed {how.seed}: {count} differ")
        return any(differ.values())


if __name__ == "__main__":
    sys.exit(main())
