#!/usr/bin/env python3
"""Makes the tokenizers of this folder, and what the library `tokenizers` makes of some texts (expected.json: for each file the ids of each
text, special tokens in texts as text, and as tokens).

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf; tests/data/tokenizers/make.py [NAME...]     (default: all of them)

gpt2.json cuts words as GPT-2 does, llama3.json as Llama 3 (digits by three, a token at the begin, words that are tokens as they are),
qwen.json as Qwen 2 (normal form C, digits one by one), spaces.json gives each text a space and has tokens that take spaces along. bert.json
and bert_cased.json are WordPiece. llama2.json and mistral.json are BPE of letters, with and without tokens for bytes; albert.json and
unigram_bytes.json are Unigram, precompiled.json with a map of SentencePiece. *.model are SentencePiece's own: unigram.model with a map, pieces of
control and of the user, bpe.model with bytes and spaces as they are, suffix.model with spaces behind words, phrase.model with pieces of several
words.
"""

import base64
import json
import pathlib
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from texts import texts

here = pathlib.Path(__file__).resolve().parent
llama3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
qwen = llama3.replace(r"\p{N}{1,3}", r"\p{N}")


def trained(tokenizer, size):
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts(1, 2000), trainer)
    return tokenizer


RULES = {"Ａ": "a", "ﬁ": "fi", "e\u0301": "é", "\u00a0": " ", "\u3000": " ", "\u0085": "", "½": "1/2", "世": "世 ", "A": "a", "T": "t", "ﷺ": "a longer text",
         "\r": "", "\n": " ", "\t": " ", "Ёжик": "x", "ё": "е", "Ё": "е"}


def pieces(**how):
    """A model of SentencePiece, as its file. rules: its map, of letters and what becomes of them."""
    how = {"vocab_size": 300, "hard_vocab_limit": False, "character_coverage": 0.98, "minloglevel": 2, "num_threads": 1, **how}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if "rules" in how:
            (folder / "rules").write_text("".join(" ".join(f"{ord(letter):X}" for letter in a) + "\t" + " ".join(f"{ord(letter):X}" for letter in b) + "\n"
                                                  for a, b in how.pop("rules").items()))
            how["normalization_rule_tsv"] = str(folder / "rules")
        (folder / "text").write_text("\n".join(texts(1, 300)))
        sentencepiece.SentencePieceTrainer.train(input=str(folder / "text"), model_prefix=str(folder / "model"), **how)
        return (folder / "model.model").read_bytes()


MODELS = {
    "unigram.model": {"rules": RULES, "control_symbols": ["<|begin|>", "<b>"], "user_defined_symbols": ["<|end|>", "the the", "▁▁", "ab", "abc"]},
    "bpe.model": {"model_type": "bpe", "vocab_size": 700, "byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False,
                  "split_digits": True, "allow_whitespace_only_pieces": True, "pad_id": 3},
    "bpe_rules.model": {"model_type": "bpe", "vocab_size": 400, "rules": RULES, "user_defined_symbols": ["<|end|>", "e▁", "ing"]},
    "suffix.model": {"treat_whitespace_as_suffix": True, "normalization_rule_name": "identity", "byte_fallback": True, "vocab_size": 600},
    "phrase.model": {"split_by_whitespace": False, "normalization_rule_name": "identity", "add_dummy_prefix": False},
}


def charsmap():
    """Of a few rules, by SentencePiece: a letter, several, a letter with a mark, nothing, and ends that rules share."""
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(pieces(rules=RULES))
    return base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()


def made():
    gpt2 = Tokenizer(models.BPE())
    gpt2.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    gpt2.post_processor = processors.ByteLevel(trim_offsets=False)
    trained(gpt2, 600)
    gpt2.add_special_tokens(["<|end|>"])

    def by(expression, size):
        tokenizer = Tokenizer(models.BPE(ignore_merges=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(expression), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        return tokenizer, size

    llama, size = by(llama3, 700)
    trained(llama, size)
    llama.add_special_tokens(["<|begin|>", "<|end|>"])
    llama.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<|begin|> $A", pair="<|begin|> $A <|begin|> $B:1",
                                      special_tokens=[("<|begin|>", llama.token_to_id("<|begin|>"))])])
    second, size = by(qwen, 700)
    second.normalizer = normalizers.NFC()
    trained(second, size)
    second.add_special_tokens(["<|end|>"])
    second.add_tokens(["<b>", "</b>"])

    spaces = Tokenizer(models.BPE())
    spaces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trained(spaces, 500)
    spaces.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True), AddedToken("<|end|>", rstrip=True, special=True)])
    spaces.add_tokens([AddedToken("<b>", lstrip=True, rstrip=True, normalized=False), "the the", "the"])
    spaces.post_processor = processors.RobertaProcessing(("<|end|>", spaces.token_to_id("<|end|>")), ("<mask>", spaces.token_to_id("<mask>")))

    def word_pieces(cased):
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=500, limit_alphabet=150, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
                                            show_progress=False)
        tokenizer.train_from_iterator(texts(1, 2000), trainer)
        around = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=around)
        return tokenizer

    cased = word_pieces(True)
    cased.post_processor = processors.BertProcessing(("[SEP]", cased.token_to_id("[SEP]")), ("[CLS]", cased.token_to_id("[CLS]")))

    bytes_too = [f"<0x{byte:02X}>" for byte in range(256)]

    def llama2(byte_fallback):
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=byte_fallback))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
        trainer = trainers.BpeTrainer(vocab_size=800 if byte_fallback else 500, limit_alphabet=120, show_progress=False,
                                      special_tokens=["<unk>", "<s>", "</s>"] + (bytes_too if byte_fallback else []))
        tokenizer.train_from_iterator(texts(1, 2000), trainer)
        plain = json.loads(tokenizer.to_str())
        plain["added_tokens"] = plain["added_tokens"][:3]
        tokenizer = Tokenizer.from_str(json.dumps(plain))
        if byte_fallback:  # as Llama 2's: a text is one word
            tokenizer.pre_tokenizer = None
            tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        else:  # as Mistral's newer ones
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B:1", special_tokens=[("<s>", 1)])
        return tokenizer

    def unigram(byte_fallback):
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.Sequence([
            normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=3000, special_tokens=["<unk>", "</s>"] + (bytes_too if byte_fallback else []), unk_token="<unk>",
                                          show_progress=False)
        tokenizer.train_from_iterator(texts(1, 300), trainer)
        plain = json.loads(tokenizer.to_str())
        plain["added_tokens"] = plain["added_tokens"][:2]
        # Letters that only few texts have are unknown.
        plain["model"]["vocab"] = [each for each in plain["model"]["vocab"] if len(each[0]) > 1 or ord(each[0]) < 0x180 or each[0] == "\u2581"]
        plain["model"]["byte_fallback"] = byte_fallback
        if byte_fallback:
            plain["normalizer"] = {"type": "NFKC"}
        tokenizer = Tokenizer.from_str(json.dumps(plain))
        tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
        return tokenizer

    def mapped(tokenizer):
        # As T5's: SentencePiece's own map.
        plain = json.loads(tokenizer.to_str())
        plain["normalizer"] = {"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": charsmap()}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}
        return Tokenizer.from_str(json.dumps(plain))

    return {"gpt2.json": gpt2, "llama3.json": llama, "qwen.json": second, "spaces.json": spaces, "bert.json": word_pieces(False), "bert_cased.json": cased,
            "llama2.json": llama2(True), "mistral.json": llama2(False), "albert.json": unigram(False), "unigram_bytes.json": unigram(True),
            "precompiled.json": mapped(unigram(False))}


def main():
    asked = texts(2, 120) + ["", " ", "a", "  a", "a" * 200, "ab" * 600, " " * 100, "\n" * 50 + "x", "<|end|>", "x<|end|>y", "a <mask> b", "the the the"]
    names = sys.argv[1:]
    expected = json.loads((here / "expected.json").read_text()) if names else {}
    expected["texts"] = asked
    for name, how in MODELS.items():
        if names and name not in names:
            continue
        (here / name).write_bytes(pieces(**how))
        expected[name] = {"text": sentencepiece.SentencePieceProcessor(model_file=str(here / name)).encode(asked)}
    for name, tokenizer in made().items() if not names or any(each.endswith(".json") for each in names) else ():
        if names and name not in names:
            continue
        (here / name).write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        tokenizer = Tokenizer.from_file(str(here / name))
        tokenizer.encode_special_tokens = True
        expected[name] = {"text": [each.ids for each in tokenizer.encode_batch(asked)]}
        tokenizer.encode_special_tokens = False
        expected[name]["tokens"] = [each.ids for each in tokenizer.encode_batch(asked)]
    (here / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
