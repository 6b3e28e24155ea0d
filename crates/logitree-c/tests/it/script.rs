//! Bytes as calls of the C interface: valid and invalid handles, texts and numbers in any order. No status may be
//! ERROR_INTERNAL. A fuzz target runs the same.
#![allow(unsafe_code)] // calls the exported functions as C does

use std::ffi::{c_char, c_void};
use std::ptr;

use logitree_c::any::*;
use logitree_c::batch::{logitree_batch_step, logitree_batch_take_forced};
use logitree_c::chain::*;
use logitree_c::constraint::*;
use logitree_c::decoder::*;
use logitree_c::matcher::*;
use logitree_c::memory::{LogitreeText, LOGITREE_F32};
use logitree_c::vocabulary::*;
use logitree_c::LogitreeStatus;

/// The most calls of one script.
const MAX_CALLS: usize = 200;
/// Tokens of the vocabulary; the last one ends the generation.
const SIZE: usize = 8;

const FORMS: [&str; 9] = [
    r#"{"type": "choices", "texts": ["ab", "abc", "c"]}"#,
    r#"{"type": "regex", "pattern": "[a-c]{1,9}"}"#,
    r#"{"type": "gbnf", "text": "root ::= \"a\" root | \"b\""}"#,
    r#"{"type": "lark", "text": "start: \"a\" start | \"c\""}"#,
    r#"{"type": "json_schema", "schema": {"enum": [1, "a"]}}"#,
    r#"{"type": "json_schema", "schema": {"type": "number"}, "numbers": "plain"}"#,
    r#"{"type": "token_tree", "payload": {"descriptors": [{"path": "p", "leaves": [{"name": "x", "tokens": [0, 900]}]}]}}"#,
    r#"{"type": "reasoning_budget", "begin": [[0]], "end": [[1]], "budget": 2}"#,
    r#"{"type": "sequence", "of": [{"type": "text"}, {"type": "literal", "text": "c"}]}"#,
];

const PARAMETERS: [&str; 4] =
    [r#"{"temp": 0.9, "seed": 3}"#, r#"{"top_k": 2, "seed": 1}"#, r#"{"mirostat": 2, "seed": 5}"#, "{"];

/// Handles that were made, freed ones among them.
struct Handles {
    vocabulary: *mut LogitreeVocabulary,
    constraints: Vec<*mut LogitreeConstraint>,
    matchers: Vec<*mut LogitreeMatcher>,
    chains: Vec<*mut LogitreeChain>,
    decoders: Vec<*mut LogitreeDecoder>,
    text: [u8; 256],
}

fn check(status: LogitreeStatus) {
    assert_ne!(status, LogitreeStatus::ErrorInternal, "a panic inside a call");
}

/// One of the handles, or NULL, or one that is no handle of the kind.
fn pick<H>(handles: &[*mut H], other: *mut c_void, at: u8) -> *mut H {
    match at {
        254 => ptr::null_mut(),
        255 => other.cast(),
        at => handles.get(usize::from(at) % handles.len().max(1)).copied().unwrap_or(ptr::null_mut()),
    }
}

fn vocabulary() -> *mut LogitreeVocabulary {
    let texts = ["a", "b", "c", "ab", "\"", "1", "{", "</s>"];
    let tokens = texts.map(|text| LogitreeText { data: text.as_ptr().cast::<c_char>(), length: text.len() });
    let (end, mut made) = (SIZE as u32 - 1, ptr::null_mut());
    // SAFETY: the list has that many texts, and `made` may be written.
    check(unsafe {
        logitree_vocabulary_from_tokens(tokens.as_ptr(), SIZE, ptr::null(), &raw const end, 1, &raw mut made)
    });
    made
}

/// Runs a script, and frees everything.
pub fn run(data: &[u8]) {
    let mut all = Handles {
        vocabulary: vocabulary(),
        constraints: Vec::new(),
        matchers: Vec::new(),
        chains: Vec::new(),
        decoders: Vec::new(),
        text: [0; 256],
    };
    let mut rest = data;
    for _ in 0..MAX_CALLS {
        let Some((call, after)) = rest.split_first_chunk::<4>() else { break };
        rest = after;
        // SAFETY: every pointer of a call is to memory of this function that is as long as it says, or NULL.
        unsafe { all.call(*call, &mut rest) };
    }
    all.free();
}

impl Handles {
    #[allow(clippy::too_many_lines)] // one arm for each call
    unsafe fn call(&mut self, [which, first, second, third]: [u8; 4], rest: &mut &[u8]) {
        let (mut ids, mut count, mut token) = ([0u32; SIZE], 0usize, 0u32);
        let other = self.vocabulary.cast::<c_void>();
        let matcher = pick(&self.matchers, other, first);
        let chain = pick(&self.chains, other, second);
        let decoder = pick(&self.decoders, other, first);
        let logits: [f32; SIZE] = std::array::from_fn(|at| match third.rotate_left(at as u32) {
            255 => f32::NAN,
            254 => f32::NEG_INFINITY,
            value => f32::from(value),
        });
        // SAFETY: as `run` says.
        unsafe {
            match which % 22 {
                0 => self.constraint(FORMS[usize::from(first) % FORMS.len()].as_bytes()),
                1 => {
                    let text = rest.split_off(..usize::from(first).min(rest.len())).unwrap_or_default();
                    self.constraint(text);
                }
                2 => {
                    let bytes = rest.split_off(..usize::from(first).min(rest.len())).unwrap_or_default();
                    let any = [matcher.cast(), chain.cast(), decoder.cast(), other][usize::from(second % 4)];
                    let (data, mut length) = (self.text.as_mut_ptr(), 0);
                    check(logitree_describe(
                        any,
                        data,
                        usize::from(third).min(self.text.len()),
                        &raw mut length,
                    ));
                    let payload = bytes.as_ptr().cast::<c_char>();
                    let room = self.text.len();
                    check(logitree_token_tree_to_binary(
                        payload,
                        bytes.len(),
                        ptr::null(),
                        data,
                        room,
                        &raw mut length,
                    ));
                }
                3 => {
                    let (constraint, mut made) = (pick(&self.constraints, other, first), ptr::null_mut());
                    check(logitree_matcher_new(constraint, self.vocabulary, &raw mut made));
                    self.matchers.push(made);
                }
                4 => {
                    let any = [matcher.cast(), chain.cast(), decoder.cast(), other][usize::from(third % 4)];
                    ids = [u32::from(second % 9); SIZE];
                    check(logitree_accept(any, ids.as_ptr(), usize::from(third / 64)));
                }
                5 => check(logitree_rollback(matcher.cast(), usize::from(second % 4))),
                6 => check(logitree_matcher_forced(matcher, ids.as_mut_ptr(), SIZE, &raw mut count)),
                7 => check(logitree_matcher_allowed(
                    matcher,
                    ids.as_mut_ptr(),
                    usize::from(second % 9),
                    &raw mut count,
                )),
                8 => check(logitree_matcher_mask(matcher, ids.as_mut_ptr(), usize::from(second % 9))),
                9 => check(logitree_matcher_state(matcher, &raw mut token, &raw mut count)),
                10 => {
                    let mut made = ptr::null_mut();
                    check(logitree_matcher_fork(matcher, &raw mut made));
                    self.matchers.push(made);
                }
                11 => check(logitree_free(matcher.cast())),
                12 => {
                    let text = PARAMETERS[usize::from(first) % PARAMETERS.len()];
                    let (data, mut made) = (text.as_ptr().cast::<c_char>(), ptr::null_mut());
                    check(logitree_chain_new(ptr::null(), data, text.len(), &raw mut made));
                    self.chains.push(made);
                }
                13 => check(logitree_chain_draw(
                    chain,
                    logits.as_ptr().cast(),
                    LOGITREE_F32,
                    SIZE,
                    matcher,
                    &raw mut token,
                )),
                14 => {
                    let bytes = rest.split_off(..usize::from(first).min(rest.len())).unwrap_or_default();
                    check(logitree_chain_restore(chain, bytes.as_ptr(), bytes.len()));
                }
                15 => check(logitree_free(chain.cast())),
                16 => {
                    let mut made = ptr::null_mut();
                    let known = self.vocabulary;
                    check(logitree_decoder_new(known, chain, matcher, ptr::null(), 0, &raw mut made));
                    self.decoders.push(made);
                }
                17 => check(logitree_decoder_step(
                    decoder,
                    logits.as_ptr().cast(),
                    u32::from(third % 4),
                    usize::from(second % 12).min(SIZE),
                    &raw mut token,
                )),
                18 => check(logitree_batch_take_forced(
                    &raw const decoder,
                    1,
                    ids.as_mut_ptr(),
                    usize::from(second % 9),
                    &raw mut count,
                )),
                19 => check(logitree_rollback(decoder.cast(), usize::from(second % 4))),
                20 => {
                    let rows = [decoder, pick(&self.decoders, other, second)];
                    let (two, end) = ([logits, logits], SIZE as u32 - 1);
                    let flat = two.as_ptr().cast::<c_void>();
                    check(logitree_batch_step(
                        rows.as_ptr(),
                        2,
                        flat,
                        LOGITREE_F32,
                        SIZE,
                        SIZE,
                        end,
                        1,
                        ids.as_mut_ptr(),
                        ptr::null_mut(),
                    ));
                }
                _ => check(logitree_free(decoder.cast())),
            }
        }
    }

    unsafe fn constraint(&mut self, text: &[u8]) {
        let mut made = ptr::null_mut();
        let known = [ptr::null(), self.vocabulary.cast_const()][text.len() % 2];
        // SAFETY: the text is as long as it says.
        check(unsafe {
            logitree_constraint_from_json(text.as_ptr().cast(), text.len(), known, &raw mut made)
        });
        self.constraints.push(made);
    }

    fn free(self) {
        let all = [self.vocabulary.cast::<c_void>()].into_iter();
        let all = all.chain(self.constraints.into_iter().map(<*mut _>::cast));
        let all = all.chain(self.matchers.into_iter().map(<*mut _>::cast));
        let all = all.chain(self.chains.into_iter().map(<*mut _>::cast));
        let all = all.chain(self.decoders.into_iter().map(<*mut _>::cast));
        // SAFETY: handles are checked.
        all.for_each(|one| check(unsafe { logitree_free(one) }));
    }
}
