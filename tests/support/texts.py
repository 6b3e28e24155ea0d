"""Varied texts, the same on every machine: scripts, emoji, control characters, code, long runs of spaces."""

from __future__ import annotations

import random
import sys

ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0123456789",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "àáâãäåæçèéêëìíîïñòóôõöøùúûüýþÿßœšž",
    "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "אבגדהוזחטיכלמנסעפצקרשת",
    "अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुू्",
    "กขคงจฉชซญฎฏฐณดตถทธนบปผฝพฟภมยรลวศษสหอฮะาิีึืุู",
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多",
    "あいうえおかきくけこさしすせそたちつてとアイウエオカキクケコ",
    "가나다라마바사아자차카타파하한국어문장",
    "አበገደሀወዘ",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢𐍈𐌰𠀀𠮷",
    "\u0300\u0301\u0302\u0308\u0323\u200b\u200c\u200d\u2060\ufeff\u00ad",
)
EMOJI = ("😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "🏳️‍🌈", "❤️", "🤷🏻‍♀️", "1️⃣", "🧑‍🚀", "🪿")
CODE = (
    "def f(x: int) -> str:\n    return f'{x!r}'  # done\n",
    "for (int i = 0; i < n; ++i) { a[i] += b[i] * 2.5e-3f; }\n",
    '{"key": [1, 2.0, null, true], "nested": {"a\\u00e9": "\\n"}}',
    "SELECT * FROM t WHERE a >= 'x' AND b IS NOT NULL;\r\n",
    '<div class="a">&nbsp;<!-- c --></div>\n\t\t<p>x</p>',
    "fn main() -> Result<(), Box<dyn Error>> { Ok(()) }\n",
    "$ ls -la | grep '^d' && echo \"$HOME\" > /dev/null 2>&1\n",
    "\\frac{\\partial f}{\\partial x} = \\sum_{i=0}^{n} x_i^2",
)
PROSE = (
    "It's the model 's turn , isn't it ? We 've said : ' well ' ; they 're here .",
    "I 'm sure ! You 'd better n't .",
    "The quick brown fox jumps over the lazy dog.",
    "Don't panic, she'll say; we'd've known.",
    "3.14159, 1,000,000 and 0x7fff_ffff",
    "https://example.org/a?b=c&d=%20#e",
    "<|im_end|> </s> <s> <unk> <0x0A> [INST] <|endoftext|> <bos> ▁x▁▁y Ġa Ċ",
)
BLANKS = (" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u2028")


def _part(rng: random.Random) -> str:
    kind = rng.randrange(10)
    if kind < 4:
        alphabet = rng.choice(ALPHABETS)
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 12)))
    if kind == 4:
        return rng.choice(EMOJI) * rng.randint(1, 3)
    if kind == 5:
        return rng.choice(CODE)
    if kind == 6:
        return rng.choice(PROSE)
    if kind == 7:
        return rng.choice(" \n\t ") * rng.randint(1, 120)
    if kind == 8:
        return "".join(chr(rng.choice((*range(0x20), 0x7F, *range(0x80, 0xA0)))) for _ in range(rng.randint(1, 6)))
    code = rng.randrange(0x20, sys.maxunicode + 1)
    return "" if 0xD800 <= code < 0xE000 else chr(code)


def varied_texts(count: int = 1000, seed: int = 20260101) -> list[str]:
    """``count`` texts of 1 to 12 parts, with and without blanks in between; none is empty."""
    rng = random.Random(seed)
    texts: list[str] = []
    while len(texts) < count:
        parts = [_part(rng) + (rng.choice(BLANKS) if rng.random() < 0.5 else "") for _ in range(rng.randint(1, 12))]
        text = ("" if rng.random() < 0.7 else rng.choice(BLANKS)) + "".join(parts)
        if text:
            texts.append(text)
    return texts
