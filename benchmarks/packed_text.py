"""What does a token cost from JSONL to a packed batch of [8, 2048]?

    python3 benchmarks/packed_text.py [--leat build/release/leat] [--megabytes 16] [--rounds 3]

Texts are those of /usr/share/doc and Python's library, as JSONL; the tokenizer is trained on a part of them (byte-level BPE, 32,000
tokens). leat: `leat epoch --tokenizer --pack 2048`, which counts all tokens before, and again with kept counts. Beside it Hugging Face:
datasets.map(tokenizer) and group_texts() as in transformers' run_clm.py, in batches of 1,000, then torch's DataLoader; one process. CPU
seconds of each, children among them, in turns; prints JSON with medians. Needs datasets, tokenizers and torch.
"""

import argparse
import glob
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

LENGTH = 2048
ROWS = 8


def texts_of(megabytes):
    """Paragraphs, of any length, until there are enough bytes."""
    left = megabytes * 1_000_000
    paths = sorted(glob.glob("/usr/share/doc/**/*", recursive=True) + glob.glob("/usr/lib/python3*/**/*.py", recursive=True))
    for path in paths:
        if not os.path.isfile(path):
            continue
        opened = gzip.open if path.endswith(".gz") else open
        try:
            with opened(path, "rb") as file:
                text = file.read().decode("utf-8")
        except (OSError, UnicodeDecodeError, EOFError):
            continue
        for begin in range(0, len(text), 6000):
            part = text[begin : begin + 6000]
            if part.strip():
                yield part
                left -= len(part)
        if left <= 0:
            return


def cpu_seconds():
    all_of = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in all_of)


def of_leat(leat, corpus, tokenizer, index):
    before = cpu_seconds()
    words = [leat, "epoch", corpus, "--tokenizer", tokenizer, "--pack", str(LENGTH), "--batch-size", str(ROWS), "--json"]
    if index:
        words += ["--index", index]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return cpu_seconds() - before


# In a process of its own: what it costs to import is not counted.
PEER = f"""
import resource, sys, datasets, torch
from tokenizers import Tokenizer
datasets.disable_progress_bars()
datasets.disable_caching()
words = Tokenizer.from_file(sys.argv[2])
def cpu():
    all_of = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in all_of)
before = cpu()
def tokenized(some):
    return {{"input_ids": [each.ids for each in words.encode_batch(some["text"])]}}
def grouped(some):
    joined = [token for each in some["input_ids"] for token in each]
    end = len(joined) // {LENGTH} * {LENGTH}
    return {{"input_ids": [joined[i : i + {LENGTH}] for i in range(0, end, {LENGTH})]}}
rows = datasets.load_dataset("json", data_files=sys.argv[1], split="train", cache_dir=sys.argv[3])
rows = rows.map(tokenized, batched=True, remove_columns=rows.column_names).map(grouped, batched=True)
tokens = 0
for batch in torch.utils.data.DataLoader(rows.with_format("torch"), batch_size={ROWS}, shuffle=True):
    tokens += batch["input_ids"].numel()
print(cpu() - before, tokens)
"""


def of_peer(corpus, tokenizer):
    with tempfile.TemporaryDirectory() as cache:
        ended = subprocess.run([sys.executable, "-c", PEER, corpus, tokenizer, cache], check=True, capture_output=True, text=True,
                               env={**os.environ, "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"})
    seconds, tokens = ended.stdout.split()
    return float(seconds), int(tokens)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--leat", default="build/release/leat")
    options.add_argument("--megabytes", type=int, default=16)
    options.add_argument("--rounds", type=int, default=3)
    asked = options.parse_args()
    from tokenizers import ByteLevelBPETokenizer

    with tempfile.TemporaryDirectory() as folder:
        corpus = os.path.join(folder, "corpus.jsonl")
        texts = list(texts_of(asked.megabytes))
        with open(corpus, "w", encoding="utf-8") as file:
            for text in texts:
                file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
        old = os.stat(corpus).st_mtime - 3600  # of a file that has just been written nothing is kept
        os.utime(corpus, (old, old))
        tokenizer = os.path.join(folder, "tokenizer.json")
        words = ByteLevelBPETokenizer()
        words.train_from_iterator(texts[::4], vocab_size=32_000, show_progress=False)
        words.save(tokenizer)
        counted = sum(len(each.ids) for each in words.encode_batch(texts))
        kept = os.path.join(folder, "index")
        took = {"leat": [], "leat, kept counts": [], "datasets, DataLoader": []}
        of_leat(asked.leat, corpus, tokenizer, kept)  # keeps them
        for _ in range(asked.rounds):
            took["leat"].append(of_leat(asked.leat, corpus, tokenizer, None))
            took["leat, kept counts"].append(of_leat(asked.leat, corpus, tokenizer, kept))
            took["datasets, DataLoader"].append(of_peer(corpus, tokenizer)[0])
        peer = statistics.median(took["datasets, DataLoader"])
        print(json.dumps({
            "texts": len(texts), "bytes": os.path.getsize(corpus), "tokens": counted,
            "ns_a_token": {name: round(1e9 * statistics.median(each) / counted, 1) for name, each in took.items()},
            "share": {name: round(statistics.median(each) / peer, 3) for name, each in took.items()}}))


if __name__ == "__main__":
    main()
