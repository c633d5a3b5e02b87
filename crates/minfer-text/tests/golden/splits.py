"""Writes `splits.tsv`: what the published patterns cut texts into, on the regular-expression engine of Hugging Face.

    python3 -m venv hf && hf/bin/pip install tokenizers==0.23.3
    hf/bin/python splits.py > splits.tsv
    hf/bin/python splits.py --random 20000 > random.tsv   # for a longer comparison

The patterns are those of the `tokenizer.json` of each model family; llama.cpp's table of pre-tokenizers names the
families. `default` is llama.cpp's own rule for files that name none.
"""

import json
import random
import sys

from tokenizers import Regex
from tokenizers.pre_tokenizers import Sequence, Split

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def cl100k(number, letters=r"\p{L}", symbols=r" ?[^\s\p{L}\p{N}]+[\r\n]*", contraction=CONTRACTION + "|", spaces=SPACES):
    return rf"{contraction}[^\r\n\p{{L}}\p{{N}}]?{letters}+|{number}|{symbols}|{spaces}"


def cased(number, contraction, tail=r"[\r\n/]*", but=""):
    upper, lower = rf"[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{but}]", rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{but}]"
    before = r"[^\r\n\p{L}\p{N}]?"
    words = rf"{before}{upper}*{lower}+{contraction}|{before}{upper}+{lower}*{contraction}"
    return rf"{words}|{number}| ?[^\s\p{{L}}\p{{N}}]+{tail}|{SPACES}"


LETTERS = (
    r"A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}"
    r"\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}"
    r"\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}"
    r"\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}"
    r"\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}"
    r"\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}"
    r"\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}"
    r"\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}"
    r"\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}"
    r"\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}"
    r"\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}"
    r"\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}"
    r"\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}"
)
CJK = "[一-龥ࠀ-一가-퟿]+"
CJK_AND_KANA = "[一-龥぀-ゟ゠-ヿ]+"
SIGNS = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"
V3_WORDS = (
    SIGNS + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
THREES = r"(?=(\d{3})+(?!\d))"
QWEN2 = cl100k(r"\p{N}")
PATTERNS = {
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [cl100k(r"\p{N}{1,3}")],
    "qwen2": [QWEN2],
    "qwen35": [cl100k(r"\p{N}", r"[\p{L}\p{M}]", r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*")],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "deepseek-llm": [
        "[\r\n]",
        rf"\s?[{LETTERS}]+",
        r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
        r"\s+$",
        CJK,
        r"\p{N}+",
    ],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", CJK_AND_KANA, V3_WORDS],
    "spark2_5": [
        r"\p{N}{1,3}",
        CJK_AND_KANA,
        V3_WORDS.replace(r"[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+", r"[\p{P}\p{S}]+|[\r\n]"),
        r"\p{N}",
    ],
    "gpt-4o": [cased(r"\p{N}{1,3}", CONTRACTION + "?")],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", cased(r"\p{N}{1,3}", CONTRACTION + "?")],
    "tekken": [cased(r"\p{N}", "")],
    "youtu": [
        "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + CJK_AND_KANA,
        cased(r"\p{N}", CONTRACTION + "?"),
    ],
    "kimi-k2": [r"[\p{Han}]+|" + cased(r"\p{N}{1,3}", CONTRACTION + "?", r"[\r\n]*", r"&&[^\p{Han}]")],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "superbpe": [r"\p{N}+", THREES],
    "seed-coder": [cl100k(r"\p{N}", symbols=r" ?[^\s\p{L}\p{N}\r\n]+")],
    "ufakzeka": [cl100k(r"\p{N}", contraction="")],
    "laguna": [r"[^\n]+|[\n]+", QWEN2],
    "exaone-moe": [
        cl100k(
            r"\p{N}",
            r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]?",
            spaces=r"\s*[\r\n]|\s+(?!\S)|\s+",
        )
    ],
    "bailingmoe": [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    ],
    "minicpm5": [r"\p{N}{1,3}", cl100k(r"\p{N}+")],
    "jais-2": [
        cl100k(
            r"\p{N}{1,3}",
            spaces=r"\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)"
            r"|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}",
        )
    ],
}

TEXTS = [
    "",
    "Hello world",
    " Hello, world!",
    "I'm you'LL we'Ve it'ſ 'S's 'x ''t don'tx O'REILLY ab'scd",
    "a  b   c \n",
    "\n\n\n x",
    "\t\n \r\n  \n y",
    "abc123456 7890 ½ ²³ Ⅷ १२३ 〇〇〇〇 12a 1234_ 1234567 12345é",
    "!!!\n\n???\r\n =",
    "$5.00+3=8 ~`^|<>/\n//\n",
    "  \u00a0\u3000 x\u2003y\u0085z",
    "नमस्ते हिन्दी",
    "日本語テキスト、123。가나다 ㄱㄴ ㄅㄆ",
    "🦙.cpp 👨‍👩‍👧 é e\u0301",
    "x\u200by\ufeffz",
    "    def f():\n        return 1\n",
    "' s 're'reX",
    "trailing   ",
    "a\n  ",
    "CamelCase HTTPServer ABCdef日本A Aあb ǅ ǅa",
    "#include <a.h>\n.method _name-part (x)",
    "⺀⺁〡〢々 中文，标点。",
    "\u0301.\u0301a \u0301\u0301",
    " " * 600 + "x" + "\t" * 7 + "\n" + " " * 5,
    "über Ärger ŁÓDŹ Ωμέγα ԱԲ Ⴀა ꭰᏸ",
    "a.b,c!d?e…f।g۔h،i(j)k|l",
    "x‘quoted’　「」。，",
]


def random_texts(n):
    pool = list("aAbzZ'sStTlLeEdDmM09 12  \n\n\r\t.,!?/_-+=<>$`~|^()#éÀßſǅΩжЖ中日あアｱ가ㄱㄅ〇Ⅷ½²٣१\u0301\u0903ा \u00a0\u3000\u2003\u0085\u200b\ufeff🦙，。：…’\x00\x7f")
    pick = random.Random(1)
    for _ in range(n):
        few = pick.sample(pool, pick.randint(1, 12))
        yield "".join(pick.choice(few if pick.random() < 0.8 else pool) for _ in range(pick.randint(1, 24)))


def main():
    texts = list(random_texts(int(sys.argv[2]))) if sys.argv[1:2] == ["--random"] else TEXTS + list(random_texts(12))
    print("# Name of the pre-tokenizer, text, words; written by splits.py with the published patterns.")
    for name, patterns in PATTERNS.items():
        splitter = Sequence([Split(Regex(pattern), "isolated") for pattern in patterns])
        for text in texts:
            words = [word for word, _ in splitter.pre_tokenize_str(text)] if text else []
            assert "".join(words) == text, (name, text, words)
            print(name, json.dumps(text), json.dumps(words), sep="\t")


main()
