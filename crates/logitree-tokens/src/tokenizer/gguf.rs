//! A tokenizer from the metadata of a GGUF file.
//!
//! | `tokenizer.ggml.model` | tokenizer |
//! |---|---|
//! | gpt2 | merges of bytes, pieces by `tokenizer.ggml.pre`; for some of its names as gemma4 |
//! | gemma4 | merges of characters, lines as pieces; other characters as byte tokens |
//! | llama | pairs that make a token, by its score; a space in front; other characters as byte tokens |
//! | t5 | a unigram model: the tokens of the highest sum of scores |
//! | bert | WordPiece: words in the longest tokens |

use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::merges::{pair, Merges, Units, Whole, NO_TOKEN};
use super::normalizer::{Change, Normalizer, MARK};
use super::patterns;
use super::splitter::Splitter;
use super::unigram::{CharsMap, Unigram};
use super::user::{Trie, UserToken, UserTokens};
use super::word_piece::WordPiece;
use super::{Model, Parts, Tokenizer};
use crate::file;
use crate::vocabulary::byte_level::character_of;
use crate::vocabulary::gguf_metadata::{Metadata, TYPE_STRING};
use crate::vocabulary::reader::malformed;
use crate::vocabulary::{TokenKind, Vocabulary};
use crate::{Result, TokenId};

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";
const SCORES: &str = "tokenizer.ggml.scores";
const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";
const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";

impl Tokenizer {
    /// The tokenizer of the GGUF file at `path`, a whole model or vocabulary-only.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read; [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary),
    /// naming the field and the byte offset, if it is malformed or its tokenizer is of a kind that is not read.
    pub fn from_gguf(path: &Path) -> Result<Self> {
        file::load(path, Self::from_gguf_bytes)
    }

    /// The tokenizer of the GGUF file whose bytes are `bytes` (up to the end of its metadata at least).
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary) as [`Tokenizer::from_gguf`].
    pub fn from_gguf_bytes(bytes: &[u8]) -> Result<Self> {
        let vocabulary = Arc::new(Vocabulary::from_gguf_bytes(bytes)?);
        let metadata = Metadata::read(bytes, |key| key.starts_with(b"tokenizer.ggml."))?;
        let (at, model) = metadata.string(MODEL)?.unwrap_or((0, b""));
        let (pre_at, pre) = match (model, metadata.string(PRE)?) {
            (b"gemma4", _) => (at, &b"gemma4"[..]),
            (_, Some((pre_at, pre))) => (pre_at, pre),
            (_, None) => (at, &b""[..]),
        };
        let texts = Texts::read(&metadata)?;
        let user = UserTokens::new(user_tokens(&vocabulary, &texts));
        let shown = |name: &[u8]| String::from_utf8_lossy(&name[..name.len().min(100)]).into_owned();
        let none = || Merges { units: byte_units(&texts), pairs: FxHashMap::default() };
        let prefix = model == b"llama" && vocabulary.about().adds_prefix_space;
        let prefix = prefix.then(|| Change::Prepend(" ".into()));
        let normalizer = Normalizer(prefix.into_iter().collect());
        let (mut patterns, mut whole) = (&[][..], Whole::Never);
        let (merges, model) = match model {
            b"gpt2" | b"gemma4" => {
                let Some(known) = patterns::named(pre) else {
                    let message = format!("pre-tokenizer {:?} is not read", shown(pre));
                    return Err(malformed(message, pre_at, PRE).help(
                        "those that llama.cpp 0.3.36 of llama-cpp-python knows are, but for \"whitespace\"",
                    ));
                };
                let units =
                    if known.is_characters { char_units(&vocabulary, &texts) } else { byte_units(&texts) };
                (patterns, whole) = (known.patterns, known.whole);
                (Merges { units, pairs: listed_pairs(&metadata, &texts)? }, Model::Merges)
            }
            b"llama" => {
                let pairs = scored_pairs(&metadata, &vocabulary, &texts)?;
                (Merges { units: char_units(&vocabulary, &texts), pairs }, Model::Merges)
            }
            b"t5" => (none(), Model::Unigram(unigram(&metadata, &vocabulary, &texts)?)),
            b"bert" => (none(), Model::WordPiece(word_piece(&metadata, &texts)?)),
            _ => {
                let message = format!("the tokenizer {:?} is not read, only its vocabulary", shown(model));
                return Err(malformed(message, at, MODEL).help("gpt2, llama, gemma4, t5 and bert are"));
            }
        };
        let splitter = Splitter::new(patterns)?;
        Ok(Tokenizer::new(Parts { vocabulary, splitter, merges, model, user, whole, normalizer, lead: None }))
    }
}

/// The texts of the tokens as the file writes them, and the tokens by text.
struct Texts<'a> {
    all: Vec<&'a [u8]>,
    ids: FxHashMap<&'a [u8], TokenId>,
}

impl<'a> Texts<'a> {
    fn read(metadata: &Metadata<'a>) -> Result<Texts<'a>> {
        let Some((count, mut cursor)) = metadata.array(TOKENS, &[TYPE_STRING])? else {
            return Err(malformed("the file has no token list", 0, TOKENS));
        };
        let (mut all, mut ids) = (Vec::with_capacity(count), FxHashMap::default());
        for index in 0..count {
            let length = cursor.u64(format_args!("{TOKENS}[{index}]"))?;
            let text = cursor.take(length, format_args!("{TOKENS}[{index}]"))?;
            if !text.is_empty() && ids.insert(text, index as TokenId).is_some() {
                return Err(cursor.fail("the text of another token", format_args!("{TOKENS}[{index}]")));
            }
            all.push(text);
        }
        Ok(Texts { all, ids })
    }

    /// The only character of a token's text.
    fn character(&self, id: usize) -> Option<char> {
        let mut chars = std::str::from_utf8(self.all[id]).ok()?.chars();
        chars.next().filter(|_| chars.next().is_none())
    }
}

fn byte_units(texts: &Texts<'_>) -> Units {
    let token = |byte: usize| {
        let text = character_of(byte as u8).to_string();
        texts.ids.get(text.as_bytes()).copied().unwrap_or(NO_TOKEN)
    };
    Units::Bytes(Box::new(std::array::from_fn(token)))
}

fn char_units(vocabulary: &Vocabulary, texts: &Texts<'_>) -> Units {
    let (mut chars, mut bytes) = (FxHashMap::default(), Box::new([NO_TOKEN; 256]));
    for id in 0..texts.all.len() {
        match texts.character(id) {
            // A space in a text is written as the mark, so that no other space is met.
            Some(' ') => {}
            Some(c) => {
                chars.insert(if c == MARK { ' ' } else { c }, id as TokenId);
            }
            None => {}
        }
        if let (TokenKind::Byte, &[byte]) =
            (vocabulary.kind(id as TokenId), vocabulary.token_bytes(id as TokenId))
        {
            bytes[usize::from(byte)] = id as TokenId;
        }
    }
    Units::Chars(chars, bytes)
}

/// The pairs of a list of merges: "left right", the first the best.
fn listed_pairs(metadata: &Metadata<'_>, texts: &Texts<'_>) -> Result<FxHashMap<u64, (u32, TokenId)>> {
    let Some((count, mut cursor)) = metadata.array(MERGES, &[TYPE_STRING])? else {
        return Err(
            malformed("the file has no merges", 0, MERGES).help("it was converted without its tokenizer")
        );
    };
    let mut pairs = FxHashMap::with_capacity_and_hasher(count, Default::default());
    let mut joined = Vec::new();
    for index in 0..count {
        let field = || format!("{MERGES}[{index}]");
        let length = cursor.u64(field())?;
        let merge = cursor.take(length, field())?;
        let space = merge.iter().skip(1).position(|&byte| byte == b' ').map(|at| at + 1);
        let Some((left, right)) = space.map(|at| (&merge[..at], &merge[at + 1..])) else {
            return Err(cursor.fail("a merge is two texts with a space between them", field()));
        };
        joined.clear();
        joined.extend_from_slice(left);
        joined.extend_from_slice(right);
        let known = |text: &[u8]| texts.ids.get(text).copied();
        match (known(left), known(right), known(&joined)) {
            (Some(left), Some(right), Some(both)) => {
                pairs.entry(pair(left, right)).or_insert((index as u32, both));
            }
            _ => return Err(cursor.fail("a merge of texts that are no tokens", field())),
        }
    }
    Ok(pairs)
}

/// The pairs that make a token, by its score, the highest the best.
fn scored_pairs(
    metadata: &Metadata<'_>,
    vocabulary: &Vocabulary,
    texts: &Texts<'_>,
) -> Result<FxHashMap<u64, (u32, TokenId)>> {
    let ranks = ranks_of_scores(metadata, texts.all.len())?;
    let mut pairs = FxHashMap::default();
    for (id, text) in texts.all.iter().enumerate() {
        let Ok(text) = std::str::from_utf8(text) else { continue };
        for (at, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(at);
            if let (Some(&left), Some(&right)) =
                (texts.ids.get(left.as_bytes()), texts.ids.get(right.as_bytes()))
            {
                pairs.insert(pair(left, right), (ranks[id], id as TokenId));
            }
        }
        let ordinary = vocabulary.kind(id as TokenId) == TokenKind::Normal;
        let unknown = |c: &char| !texts.ids.contains_key(c.to_string().as_bytes());
        if let Some(c) = text.chars().find(unknown).filter(|_| ordinary && text.chars().count() > 1) {
            let message = format!("token {id} has the character {c:?}, which is no token");
            return Err(malformed(message, 0, format_args!("{TOKENS}[{id}]")));
        }
    }
    Ok(pairs)
}

/// The scores of the tokens, none of them NaN.
fn scores(metadata: &Metadata<'_>, tokens: usize) -> Result<Vec<f32>> {
    let Some((count, mut cursor)) = metadata.array(SCORES, &[5, 6])? else {
        return Err(malformed("the file has no scores", 0, SCORES));
    };
    let is_float = metadata.array(SCORES, &[6]).is_ok();
    if count < tokens {
        return Err(cursor.fail(format!("{count} scores for {tokens} tokens"), SCORES));
    }
    let mut scores = Vec::with_capacity(tokens);
    for index in 0..tokens {
        let bits = cursor.u32(SCORES)?;
        let score = if is_float { f32::from_bits(bits) } else { bits as i32 as f32 };
        if score.is_nan() {
            return Err(cursor.fail("a score that is no number", format_args!("{SCORES}[{index}]")));
        }
        scores.push(score);
    }
    Ok(scores)
}

/// 0 for the tokens of the highest score, 1 for those of the next, and so on.
fn ranks_of_scores(metadata: &Metadata<'_>, tokens: usize) -> Result<Vec<u32>> {
    let scores = scores(metadata, tokens)?;
    let mut order: Vec<u32> = (0..tokens as u32).collect();
    order.sort_unstable_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
    let (mut ranks, mut rank) = (vec![0; tokens], 0);
    for at in 0..tokens {
        // Zero has two signs and one value.
        if at > 0 && scores[order[at] as usize] != scores[order[at - 1] as usize] {
            rank += 1;
        }
        ranks[order[at] as usize] = rank;
    }
    Ok(ranks)
}

fn unigram(metadata: &Metadata<'_>, vocabulary: &Vocabulary, texts: &Texts<'_>) -> Result<Unigram> {
    let scores = scores(metadata, texts.all.len())?;
    let (mut all, mut user, mut lowest) = (Trie::default(), Trie::default(), f32::MAX);
    for (id, text) in texts.all.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
        match vocabulary.kind(id as TokenId) {
            TokenKind::Normal => lowest = lowest.min(scores[id]),
            TokenKind::UserDefined => user.insert(text, id),
            TokenKind::Unused => {}
            _ => continue,
        }
        all.insert(text, id);
    }
    let is_user = |id: usize| vocabulary.kind(id as TokenId) == TokenKind::UserDefined;
    let score = |(id, &score): (usize, &f32)| if is_user(id) { 0.0 } else { f64::from(score) };
    let map = match metadata.array(CHARSMAP, &[0, 1])? {
        None => None,
        Some((length, mut cursor)) => {
            let map = CharsMap::new(cursor.take(length as u64, CHARSMAP)?);
            Some(map.ok_or_else(|| malformed("a map of characters that is malformed", 0, CHARSMAP))?)
        }
    };
    Ok(Unigram {
        texts: all,
        scores: scores.iter().enumerate().map(score).collect(),
        user,
        unknown: unknown_token(metadata, texts, 2)?,
        lowest: f64::from(lowest),
        map,
        leads: vocabulary.about().adds_prefix_space,
        merges_spaces: metadata.bool("tokenizer.ggml.remove_extra_whitespaces")?.unwrap_or(false),
    })
}

fn word_piece(metadata: &Metadata<'_>, texts: &Texts<'_>) -> Result<WordPiece> {
    let mut all = Trie::default();
    texts
        .all
        .iter()
        .enumerate()
        .filter(|(_, text)| !text.is_empty())
        .for_each(|(id, text)| all.insert(text, id));
    let lowercase = metadata.bool("tokenizer.ggml.normalizer.lowercase")?.unwrap_or(true);
    let strip_accents = metadata.bool("tokenizer.ggml.normalizer.strip_accents")?.unwrap_or(lowercase);
    Ok(WordPiece::new(all, unknown_token(metadata, texts, 100)?, lowercase, strip_accents))
}

/// The token for what is no token, by its default id where the file does not name it.
fn unknown_token(metadata: &Metadata<'_>, texts: &Texts<'_>, default: TokenId) -> Result<TokenId> {
    let (at, id) = metadata.integer(UNKNOWN)?.unwrap_or((0, i128::from(default)));
    match usize::try_from(id) {
        Ok(known) if known < texts.all.len() => Ok(id as TokenId),
        _ => Err(malformed(format!("the unknown token {id} of {} tokens", texts.all.len()), at, UNKNOWN)),
    }
}

fn user_tokens(vocabulary: &Vocabulary, texts: &Texts<'_>) -> Vec<UserToken> {
    let name = vocabulary.about().name.to_lowercase();
    let strips = name.contains("phi-3") || name.contains("phi3");
    let all = 0..texts.all.len() as TokenId;
    let user = all.filter(|&id| vocabulary.kind(id) == TokenKind::UserDefined);
    user.map(|id| {
        let text = texts.all[id as usize];
        let keeps = matches!(text, b"<unk>" | b"<s>" | b"<|endoftext|>");
        UserToken { text: text.into(), token: id, strips_right: strips && !keeps, ..UserToken::default() }
    })
    .collect()
}
