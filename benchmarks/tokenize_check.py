#!/usr/bin/env python3
"""Are the tokens those of the reference, and what do they cost beside it?

    pip install tokenizers tiktoken sentencepiece            # in a scratch environment
    python3 benchmarks/tokenize_check.py --tokenizer tokenizer.json --text TEXT... [--rounds 3]

A tokenizer.json is compared with Hugging Face's tokenizers, a cl100k_base.tiktoken with tiktoken, a tokenizer.model with sentencepiece. Each TEXT is cut into the documents of
tokenize_benchmark. In turns, one thread each; the libraries' time is that of their calls from Python, ids as lists, and the first round
of each is not counted. Prints MB per CPU-second, medians of the rounds, and their ratio. Exits with 1 where any id differs.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
DOCUMENT_BYTES = 4000
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def documents_of(text):
    documents = []
    while text:
        end = text.find(b"\n", min(DOCUMENT_BYTES, len(text)))
        end = len(text) if end < 0 else end
        documents.append(text[:end].decode("utf8", "replace"))
        text = text[end + 1:]
    return documents


def reference_of(path):
    if path.suffix == ".json":
        from tokenizers import Tokenizer, __version__
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.encode_special_tokens = True
        return f"tokenizers {__version__}", lambda text: tokenizer.encode(text).ids
    if path.suffix == ".model":
        import sentencepiece
        return f"sentencepiece {sentencepiece.__version__}", sentencepiece.SentencePieceProcessor(model_file=str(path)).encode
    import base64
    import tiktoken
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in path.read_bytes().splitlines() if line)}
    encoding = tiktoken.Encoding("cl100k", pat_str=CL100K, mergeable_ranks=ranks, special_tokens={})
    return f"tiktoken {tiktoken.__version__}", encoding.encode_ordinary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--text", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--benchmark", type=pathlib.Path, default=pathlib.Path("build/release/benchmarks/tokenize_benchmark"))
    arguments = parser.parse_args()
    name, encode = reference_of(arguments.tokenizer)
    same = True
    for path in arguments.text:
        text = path.read_bytes()
        documents = documents_of(text)
        total, tokens = 0, 0
        for document in documents:  # the round that is not counted
            for each in encode(document):
                total = (total * 31 + each) & (1 << 64) - 1
                tokens += 1
        theirs, ours = [], []
        for _ in range(arguments.rounds):
            began = time.thread_time()
            for document in documents:
                encode(document)
            theirs.append(time.thread_time() - began)
            done = subprocess.run([arguments.benchmark, "--tokenizer", arguments.tokenizer, "--text", path, "--rounds", "1"],
                                  capture_output=True, text=True, check=True)
            made = json.loads(done.stdout)
            ours += made["cpu_s"]
        alike = (made["tokens"], made["sum"]) == (tokens, total)
        same = same and alike
        speed = [len(text) / statistics.median(times) / 1e6 for times in (ours, theirs)]
        print(f"{path.name}: {len(text):,} bytes, {tokens:,} tokens, ids {'equal' if alike else 'DIFFER'}; leat {speed[0]:.1f} MB/s, "
              f"{name} {speed[1]:.1f} MB/s: {speed[0] / speed[1]:.2f} x")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
