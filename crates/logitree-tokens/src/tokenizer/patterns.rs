//! The patterns of known pre-tokenizers, as their authors published them, by the names that GGUF files give them.

use super::merges::Whole;

/// GPT-2's.
pub(super) const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Llama 3's.
pub(super) const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Qwen 2's: Llama 3's with single digits.
pub(super) const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// DeepSeek LLM's. White space beyond ASCII is in no range of its own here, as in llama.cpp.
pub(super) const DEEPSEEK_LLM: [&str; 6] = [
    r"[\r\n]",
    concat!(
        "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u{1f7d}ᾀ-ᾴᾶ-ᾼ\u{1fbe}ῂ-ῄῆ-ῌῐ-\u{1fd3}ῖ-\u{1fdb}ῠ-Ῥῲ-ῴῶ-ῼ",
        "ℂℇℊ-ℓℕℙ-ℝℤ\u{2126}ℨ\u{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
    ),
    r"\s?[!-/:-~！-／：-～‘-‟、。]+",
    r"\s+$",
    r"[一-龥ࠀ-一가-퟿]+",
    r"\p{N}+",
];

/// The lines and the runs of line feeds of a text: what Gemma 4 merges between.
pub(super) const LINES: &str = r"[^\n]+|[\n]+";

/// The patterns of the pre-tokenizer `name`, and which pieces are tokens as they are. `None` if it is not known.
pub(super) fn named(name: &[u8]) -> Option<(Vec<&'static str>, Whole)> {
    Some(match name {
        b"gpt-2" | b"phi-2" | b"jina-es" | b"jina-de" | b"jina-v2-es" | b"jina-v2-de" | b"gigachat"
        | b"a.x-4.0" | b"mellum" | b"modern-bert" | b"mpt" | b"olmo" | b"jais" | b"exaone4" | b"trillion"
        | b"granite-docling" => (vec![GPT2], Whole::Never),
        b"smollm" | b"starcoder" | b"refact" | b"command-r" | b"codeshell" | b"exaone" | b"minerva-7b" => {
            (vec![r"\p{N}", GPT2], Whole::Never)
        }
        b"llama3" | b"llama-v3" | b"llama-bpe" | b"falcon3" | b"falcon-h1" | b"pixtral" | b"midm-2.0"
        | b"lfm2" => (vec![LLAMA3], Whole::Always),
        b"dbrx" | b"smaug-bpe" | b"glm4" | b"chatglm-bpe" => (vec![LLAMA3], Whole::Never),
        b"qwen2" | b"deepseek-r1-qwen" | b"stablelm2" | b"hunyuan" | b"megrez" | b"grok-2" => {
            (vec![QWEN2], Whole::Never)
        }
        b"deepseek-llm" => (DEEPSEEK_LLM.to_vec(), Whole::Never),
        b"gemma4" => (vec![LINES], Whole::LineFeeds),
        _ => return None,
    })
}
