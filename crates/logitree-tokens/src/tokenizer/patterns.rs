//! The pre-tokenizers that GGUF files name, with llama.cpp's reading of each.
//!
//! llama.cpp compiles most patterns over one byte per character, so that it has no upper and lower case beyond ASCII, and
//! ranges that contain white space beyond ASCII do not match it. The patterns here say the same.

use super::merges::Whole;

/// English contractions in any case.
macro_rules! contraction {
    () => {
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    };
}

/// White space: up to the last line break, then all but the last character before other text.
macro_rules! space {
    () => {
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    };
}

/// The character before a word.
macro_rules! lead {
    () => {
        r"[^\r\n\p{L}\p{N}]?"
    };
}

/// Words that end in small letters, then words of capitals, by the sets of both: cased only in ASCII.
macro_rules! cased {
    ($upper:literal, $lower:literal, $tail:expr) => {
        concat!(lead!(), $upper, "*", $lower, "+", $tail, "|", lead!(), $upper, "+", $lower, "*", $tail)
    };
}

/// Signs, with the line breaks and slashes after them.
macro_rules! signs {
    () => {
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
    };
}

/// What DeepSeek V3 and its relatives cut by, after digits and CJK.
macro_rules! ascii_words {
    () => {
        concat!(
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
            r"| ?[\p{P}\p{S}]+"
        )
    };
}

/// GPT-2's.
pub(super) const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Llama 3's.
pub(super) const LLAMA3: &str =
    concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*", space!());

/// Qwen 2's: Llama 3's with single digits.
pub(super) const QWEN2: &str =
    concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*", space!());

/// Qwen 3.5's: marks are letters.
const QWEN35: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    space!()
);

/// DeepSeek LLM's.
pub(super) const DEEPSEEK_LLM: [&str; 6] = [
    r"[\r\n]",
    concat!(
        "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u{1f7d}ᾀ-ᾴᾶ-ᾼ\u{1fbe}ῂ-ῄῆ-ῌῐ-\u{1fd3}ῖ-\u{1fdb}ῠ-Ῥῲ-ῴῶ-ῼ",
        "ℂℇℊ-ℓℕℙ-ℝℤ\u{2126}ℨ\u{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
    ),
    r"\s?[!-/:-~！-／：-～‘-‟、。]+",
    r"\s+\z",
    DEEPSEEK_CJK,
    r"\p{N}+",
];
const DEEPSEEK_CJK: &str = r"[[一-龥ࠀ-一가-퟿]&&\S]+";

/// CJK as DeepSeek V3 groups it: Han, Hiragana, Katakana.
const CJK: &str = "[一-龥぀-ゟ゠-ヿ]+";
const DEEPSEEK_V3: [&str; 3] = [r"\p{N}{1,3}", CJK, concat!(ascii_words!(), r"[\r\n]*", space!())];

/// GPT-4o's.
const GPT4O: &str = concat!(
    cased!(r"[\p{L}&&[^a-z]]", r"[\p{L}&&[^A-Z]]", concat!(contraction!(), "?")),
    r"|\p{N}{1,3}",
    signs!(),
    space!()
);

/// Granite's multilingual one: GPT-4o's with marks as letters.
const GRANITE: &str = concat!(
    cased!(r"[\p{L}\p{M}&&[^a-z]]", r"[\p{L}\p{M}&&[^A-Z]]", concat!(contraction!(), "?")),
    r"|\p{N}{1,3}",
    signs!(),
    space!()
);

/// Tekken's: GPT-4o's without contractions, with single digits.
pub(super) const TEKKEN: &str =
    concat!(cased!(r"[\p{L}&&[^a-z]]", r"[\p{L}&&[^A-Z]]", ""), r"|\p{N}", signs!(), space!());

/// Kimi K2's: Han by itself, other letters without case.
const KIMI_K2: &str = concat!(
    r"[㐀-䶿一-鿿\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef}\x{2f800}-\x{2fa1f}]+|",
    lead!(),
    r"[\p{L}&&[^㐀-䶿一-鿿\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef}\x{2f800}-\x{2fa1f}]]+",
    contraction!(),
    r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    space!()
);

/// Bailing's: one line break at a time.
const BAILING: &str = concat!(
    r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
);

/// EXAONE MoE's: words with the spaces between them.
const EXAONE_MOE: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
);

/// Jais 2's: Llama 3's with white space in powers of two.
const JAIS2: &str = concat!(
    contraction!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
    r"|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)",
    r"|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
);

/// MiniCPM 5's second: Llama 3's with numbers of any length.
const MINICPM5: &str =
    concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*", space!());

/// Seed Coder's: signs without the line breaks after them.
const SEED_CODER: &str =
    concat!(contraction!(), r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+", space!());

/// Ufakzeka's: Qwen 2's without contractions.
const UFAKZEKA: &str = concat!(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*", space!());

/// Youtu's: scripts by themselves, then words with their marks.
const YOUTU: [&str; 2] = [
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
    concat!(lead!(), r"[\p{L}\p{M}]+", contraction!(), r"?|\p{N}", signs!(), space!()),
];

/// Spark 2.5's.
const SPARK: [&str; 4] = [r"\p{N}{1,3}", CJK, concat!(ascii_words!(), r"|[\r\n]|\s+(?!\S)|\s+"), r"\p{N}"];

/// Tiny Aya's: groups of three digits from the right, each number with what is before it, then GPT-4o's with marks as letters
/// and without case.
const TINY_AYA: [&str; 2] = [
    DIGITS_FROM_THE_RIGHT,
    concat!(lead!(), r"[\p{L}\p{M}]+", contraction!(), r"?|\p{N}{1,3}", signs!(), space!()),
];
const DIGITS_FROM_THE_RIGHT: &str = r"[^\p{N}]*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))";

/// AFMoE's: digits as Tiny Aya, the scripts without spaces, then DeepSeek V3's words.
const AFMOE: [&str; 3] = [
    DIGITS_FROM_THE_RIGHT,
    "[一-鿿㐀-䶿\\x{8c48}-\\x{faff}぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+",
    concat!(ascii_words!(), r"[\r\n]*", space!()),
];

/// Chameleon's: its image tokens, indents, digits, signs.
const CHAMELEON: [&str; 6] =
    ["<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2];

/// Bloom's: no white space and no end of a sentence within a piece.
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";

/// Where nothing is named.
const DEFAULT: [&str; 4] = [r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"];

/// The lines and the runs of line feeds of a text: what Gemma 4 merges between.
pub(super) const LINES: &str = r"[^\n]+|[\n]+";

/// What a name stands for.
pub(super) struct Known {
    pub patterns: &'static [&'static str],
    pub whole: Whole,
    /// Whether merges join characters, with U+2581 for a space, and not bytes.
    pub is_characters: bool,
}

/// Names, patterns, and which pieces are tokens as they are.
type Family = (&'static [&'static [u8]], &'static [&'static str], Whole);

#[rustfmt::skip]
const FAMILIES: [Family; 32] = [
    (&[b"gpt-2", b"phi-2", b"jina-es", b"jina-de", b"jina-v2-es", b"jina-v2-de", b"gigachat", b"a.x-4.0", b"mellum",
       b"modern-bert", b"mpt", b"olmo", b"jais", b"exaone4", b"trillion", b"granite-docling", b"jina-v1-en",
       b"jina-v2-code", b"roberta-bpe"], &[GPT2], Whole::Never),
    (&[b"smollm", b"starcoder", b"refact", b"command-r", b"codeshell", b"exaone", b"minerva-7b", b"mellum2"],
     &[r"\p{N}", GPT2], Whole::Never),
    (&[b"llama3", b"llama-v3", b"llama-bpe", b"falcon3", b"falcon-h1", b"pixtral", b"midm-2.0", b"lfm2", b"jina-v5-nano",
       b"glm4", b"glm5"], &[LLAMA3], Whole::Always),
    (&[b"dbrx", b"smaug-bpe", b"chatglm-bpe"], &[LLAMA3], Whole::Never),
    (&[b"qwen2", b"deepseek-r1-qwen", b"stablelm2", b"hunyuan", b"megrez", b"grok-2", b"kormo", b"f2llmv2",
       b"solar-open"], &[QWEN2], Whole::Never),
    (&[b"qwen35"], &[QWEN35], Whole::Never),
    (&[b"gpt-4o", b"llama4", b"kanana2", b"talkie", b"minimax-m2"], &[GPT4O], Whole::Never),
    (&[b"tekken"], &[TEKKEN], Whole::Always),
    (&[b"kimi-k2"], &[KIMI_K2], Whole::Never),
    (&[b"deepseek-v3", b"hunyuan-dense", b"joyai-llm", b"hy_v4"], &DEEPSEEK_V3, Whole::Never),
    (&[b"deepseek-llm"], &DEEPSEEK_LLM, Whole::Never),
    (&[b"deepseek-coder"], &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_CJK, r"\p{N}"], Whole::Never),
    (&[b"gemma4", b"granite-embed-multi-311m"], &[LINES], Whole::LineFeeds),
    (&[b"sarvam-moe"], &[LINES], Whole::Never),
    (&[b"granite-embed-multi-97m"], &[GRANITE], Whole::Always),
    (&[b"bailingmoe", b"bailingmoe2", b"llada-moe"], &[BAILING], Whole::Never),
    (&[b"exaone-moe"], &[EXAONE_MOE], Whole::Never),
    (&[b"minicpm5"], &[r"\p{N}{1,3}", MINICPM5], Whole::Always),
    (&[b"seed-coder"], &[SEED_CODER], Whole::Never),
    (&[b"ufakzeka"], &[UFAKZEKA], Whole::Never),
    (&[b"laguna"], &[LINES, QWEN2], Whole::Never),
    (&[b"youtu"], &YOUTU, Whole::Always),
    (&[b"spark2_5"], &SPARK, Whole::Never),
    (&[b"jais-2"], &[JAIS2], Whole::Never),
    (&[b"falcon"], &[r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"], Whole::Never),
    (&[b"poro-chat", b"bloom", b"gpt3-finnish"], &[BLOOM], Whole::Never),
    (&[b"viking"], &[BLOOM, r"\p{N}"], Whole::Never),
    (&[b"chameleon"], &CHAMELEON, Whole::Never),
    (&[b"tiny_aya", b"cohere2moe"], &TINY_AYA, Whole::Never),
    (&[b"superbpe"], &[r"\p{N}+", r"(?=(?:[0-9]{3})+(?![0-9]))"], Whole::Never),
    (&[b"afmoe"], &AFMOE, Whole::Never),
    (&[b"default", b""], &DEFAULT, Whole::Never),
];

/// The pre-tokenizer `name`; `None` if it is not known.
pub(super) fn named(name: &[u8]) -> Option<Known> {
    let &(_, patterns, whole) = FAMILIES.iter().find(|(names, ..)| names.contains(&name))?;
    let is_characters = matches!(name, b"gemma4" | b"granite-embed-multi-311m" | b"sarvam-moe");
    Some(Known { patterns, whole, is_characters })
}
