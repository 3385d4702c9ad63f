#!/usr/bin/env python3
"""Asks the library `tokenizers` what each letter of Unicode is to it, and writes stages/tokenize/reference_letters.inc.

    pip install tokenizers==0.23.3; tests/data/tokenizers/letters.py

The library's tables are of older Unicodes than utf8proc's, each of another one: its behaviour is what counts.
"""

import ctypes
import pathlib

from tokenizers import normalizers, pre_tokenizers

target = pathlib.Path(__file__).resolve().parents[3] / "stages/tokenize/reference_letters.inc"
letters = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
utf8proc = ctypes.CDLL("libutf8proc.so.2")
libc = ctypes.CDLL(None)
STABLE, COMPAT, COMPOSE, DECOMPOSE = 2, 4, 8, 16


def by_utf8proc(text, form):
    given = text.encode()
    made = ctypes.c_void_p()
    size = utf8proc.utf8proc_map(given, len(given), ctypes.byref(made), STABLE | form)
    result = ctypes.string_at(made, size).decode()
    libc.free(made)
    return result


def bert(**on):
    usual = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**(usual | on)).normalize_str


def ranges(of):
    made = []
    for code in of:
        if made and made[-1][1] == code - 1:
            made[-1][1] = code
        else:
            made.append([code, code])
    return made


def main():
    clean, accents, lower, marks = bert(clean_text=True), bert(strip_accents=True), normalizers.Lowercase().normalize_str, normalizers.StripAccents().normalize_str
    nfd, nfkd = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str
    cut = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    sets = {"removed": [], "nonspacing": [], "marks": [], "punctuation": [], "unknown": []}
    lowered = []
    for code in letters:
        letter = chr(code)
        if clean(letter) == "":
            sets["removed"].append(code)
        if accents(letter) == "":
            sets["nonspacing"].append(code)
        if marks(letter) == "":
            sets["marks"].append(code)
        if [word for word, _ in cut(f"a{letter}a")] == ["a", letter, "a"]:
            sets["punctuation"].append(code)
        # Behind a mark of the greatest class and before one of the least a mark does not stay where it is.
        if any(ours(text) != by_utf8proc(text, form) for text in (letter, f"a{letter}\u0334", f"a\u0345{letter}")
               for ours, form in ((nfd, DECOMPOSE), (nfkd, DECOMPOSE | COMPAT))):
            sets["unknown"].append(code)
        if lower(letter) != letter and letter != "\u0130" and lower(letter) != chr(utf8proc.utf8proc_tolower(code)):
            assert len(lower(letter)) == 1
            lowered.append((code, ord(lower(letter)) - code))
        elif lower(letter) == letter and utf8proc.utf8proc_tolower(code) != code:
            lowered.append((code, 0))
    with target.open("w") as out:
        out.write("// Made by tests/data/tokenizers/letters.py of what tokenizers 0.23.3 does; not to be changed by hand.\n")
        for name, of in sets.items():
            all_of = [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(of)]
            out.write(f"constexpr letter_range {name}_letters[] = {{\n")
            for i in range(0, len(all_of), 6):
                out.write("    " + ", ".join(all_of[i:i + 6]) + ",\n")
            out.write("};\n")
        runs = []
        for code, by in lowered:
            if runs and runs[-1][1] == code - 1 and runs[-1][2] == by:
                runs[-1][1] = code
            else:
                runs.append([code, code, by])
        out.write("constexpr lowered_range lowered_letters[] = {\n")
        for first, last, by in runs:
            out.write(f"    {{0x{first:X}, 0x{last:X}, {by}}},\n")
        out.write("};\n")


if __name__ == "__main__":
    main()
