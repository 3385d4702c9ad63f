"""Texts that were made up: words of several languages, numbers, code, odd letters and spaces."""

import random

words = """the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one you were
her all she there would their we him been has when who will more no if out so said what up its about into than them can only other new some
could time these two may then do first any my now such like our over man me even most made after also did many before must through back
years where much your way well down should because each just those people take see how good world""".split()
others = "Größe naïve café Ёжик привет мир 世界 你好 こんにちは 안녕 ไทย हिन्दी مرحبا שלום ½ ² Ⅷ 😀 👩‍👩‍👧‍👦 🇩🇪 e\u0301 o\u0308 \u1e9b\u0323 ſ Ꭰ".split()


def texts(seed, count):
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        text = ""
        for _ in range(draw.randrange(1, 40)):
            kind = draw.random()
            if kind < 0.6:
                word = draw.choice(words)
                text += draw.choice((word, word.title(), word.upper(), word + "'s", word + "'LL"))
            elif kind < 0.75:
                text += draw.choice(others)
            elif kind < 0.85:
                text += str(draw.randrange(10 ** draw.randrange(1, 8)))
            elif kind < 0.95:
                text += draw.choice(("def f(x):\n\treturn x + 1\n", "for (int i = 0; i < n; ++i) {", "https://a.b/c?d=e&f", "...", "!!??", "--", "<|end|>",
                                     "<b>", "\r\n\r\n", "\n\n\n", "\u0085", "\u00a0", "\u3000", "\t\t"))
            else:
                text += chr(draw.choice((draw.randrange(1, 0x300), draw.randrange(0x300, 0xd800), draw.randrange(0x10000, 0x30000))))
            text += draw.choice((" ", " ", " ", "", "  ", "   ", "\n", " ,"))
        made.append(text)
    return made
