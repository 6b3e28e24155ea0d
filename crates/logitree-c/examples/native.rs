//! Times the C interface and the llama.cpp sampler: `native VOCABULARY.gguf PAYLOAD.json [libllama.so]`. A line of JSON for
//! each case: nanoseconds of ours and, under "minus" or "peer", of what it is compared with.
//!
//! Every figure is the lower quartile of rounds of many calls; the contenders of a case take turns.
#![allow(unsafe_code)] // loads libllama and calls its functions

use std::ffi::{c_char, c_int, c_void, CString};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logitree::constraint::{End, PayloadCheck, TokenTree};
use logitree::sampling::presets;
use logitree::{Matcher, Params, Vocabulary};
use logitree_c::any::{logitree_accept, logitree_rollback};
use logitree_c::matcher::LogitreeMatcher;
use logitree_c::LogitreeStatus;
use logitree_llama::candidates::TokenData;
use logitree_llama::{LlamaLibrary, SamplerOptions, SamplerState, Selection};

const ROUNDS: usize = 41;

/// `llama_token_data_array`.
#[repr(C)]
struct Array {
    data: *mut TokenData,
    size: usize,
    selected: i64,
    is_sorted: bool,
}

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

type Sampler = *mut c_void;

/// The functions of libllama that the cases call.
struct Llama(*mut c_void);

impl Llama {
    fn open(path: &str) -> Llama {
        let path = CString::new(path).unwrap();
        // SAFETY: a text that ends in a byte of 0; RTLD_NOW.
        let library = unsafe { dlopen(path.as_ptr(), 2) };
        assert!(!library.is_null(), "libllama cannot be loaded");
        Llama(library)
    }

    /// A function of this name, as a type of a function.
    fn get<F: Copy>(&self, name: &str) -> F {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        let c_name = CString::new(name).unwrap();
        // SAFETY: an open library; a pointer to a function has the size of a pointer, and `F` is its type in llama.h.
        unsafe {
            let found = dlsym(self.0, c_name.as_ptr());
            assert!(!found.is_null(), "there is no {name}");
            std::mem::transmute_copy(&found)
        }
    }

    fn chain(&self, samplers: &[Sampler]) -> Sampler {
        // The parameters are one bool, which is passed as one byte.
        let init: unsafe extern "C" fn(bool) -> Sampler = self.get("llama_sampler_chain_init");
        let add: unsafe extern "C" fn(Sampler, Sampler) = self.get("llama_sampler_chain_add");
        // SAFETY: functions of the library, samplers that no chain owns.
        unsafe {
            let chain = init(true);
            samplers.iter().for_each(|&sampler| add(chain, sampler));
            chain
        }
    }

    /// llama.cpp's own chain with its default parameters, but for the repetition penalty (1 is the default: none).
    fn default_chain(&self, vocabulary: i32, repeat: f32) -> Sampler {
        let penalties: unsafe extern "C" fn(i32, i32, f32, f32, f32) -> Sampler =
            self.get("llama_sampler_init_penalties");
        let top_k: unsafe extern "C" fn(i32) -> Sampler = self.get("llama_sampler_init_top_k");
        let top_p: unsafe extern "C" fn(f32, usize) -> Sampler = self.get("llama_sampler_init_top_p");
        let min_p: unsafe extern "C" fn(f32, usize) -> Sampler = self.get("llama_sampler_init_min_p");
        let temp: unsafe extern "C" fn(f32) -> Sampler = self.get("llama_sampler_init_temp");
        let dist: unsafe extern "C" fn(u32) -> Sampler = self.get("llama_sampler_init_dist");
        // SAFETY: functions of the library with llama.h's types.
        unsafe {
            let own = [
                penalties(vocabulary, 64, repeat, 0.0, 0.0),
                top_k(40),
                top_p(0.95, 1),
                min_p(0.05, 1),
                temp(0.8),
                dist(1),
            ];
            self.chain(&own)
        }
    }

    fn library(&self) -> LlamaLibrary {
        let functions = LlamaLibrary::FUNCTIONS.map(|name| self.get::<*const c_void>(name));
        // SAFETY: all are of this library, which stays loaded.
        unsafe { LlamaLibrary::new(functions, size_of::<TokenData>(), size_of::<Array>()).unwrap() }
    }
}

/// The lower quartile of what rounds took.
fn quartile(mut rounds: Vec<Duration>, calls: usize) -> f64 {
    rounds.sort_unstable();
    rounds[rounds.len() / 4].as_secs_f64() * 1e9 / calls as f64
}

/// Nanoseconds of a call of each contender; `prepare` is not timed.
fn time<const N: usize>(
    calls: usize,
    prepare: &mut dyn FnMut(),
    contenders: [&mut dyn FnMut(); N],
) -> [f64; N] {
    let mut rounds: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..ROUNDS {
        for turn in 0..N {
            let at = (turn + round) % N;
            prepare();
            let started = Instant::now();
            for _ in 0..calls {
                contenders[at]();
            }
            rounds[at].push(started.elapsed());
        }
    }
    rounds.map(|taken| quartile(taken, calls))
}

fn matcher(payload: &[u8], vocabulary: &Arc<Vocabulary>) -> Box<dyn Matcher> {
    let tree = Arc::new(TokenTree::from_json(payload, &PayloadCheck::default()).unwrap());
    let end = End { vocabulary: Some(Arc::clone(vocabulary)), ..End::default() };
    tree.matcher(tree.descriptors()[0].path(), &end).unwrap()
}

/// What a call costs beyond the Rust call.
fn through_c(payload: &[u8], vocabulary: &Arc<Vocabulary>) {
    let mut own = matcher(payload, vocabulary);
    let token = match own.allowed().unwrap() {
        logitree::AllowedTokens::Ids(ids) => ids[0],
        _ => unreachable!("a token tree has few tokens"),
    };
    let handle = logitree_c::handles::insert::<LogitreeMatcher>(matcher(payload, vocabulary)).unwrap().cast();
    let [c, rust] = time(
        20_000,
        &mut || {},
        [
            &mut || {
                // SAFETY: handles are checked.
                let accepted = unsafe { logitree_accept(black_box(handle), &raw const token, 1) };
                assert_eq!(accepted, LogitreeStatus::Ok);
                // SAFETY: handles are checked.
                assert_eq!(unsafe { logitree_rollback(black_box(handle), 1) }, LogitreeStatus::Ok);
            },
            &mut || {
                black_box(&mut own).accept(token).unwrap();
                black_box(&mut own).rollback(1).unwrap();
            },
        ],
    );
    println!(
        r#"{{"case": "call through C, beyond the Rust call", "ours": {}, "minus": {}}}"#,
        c / 2.0,
        rust / 2.0
    );
}

/// The sampler of a token tree in llama.cpp's chain, over a whole vocabulary.
fn in_a_chain(llama: &Llama, payload: &[u8], vocabulary: &Arc<Vocabulary>, logits: &[f32]) {
    let accept: unsafe extern "C" fn(Sampler, i32) = llama.get("llama_sampler_accept");
    let apply: unsafe extern "C" fn(Sampler, *mut Array) = llama.get("llama_sampler_apply");
    let reset: unsafe extern "C" fn(Sampler) = llama.get("llama_sampler_reset");
    let options = SamplerOptions::default();
    let state = SamplerState::new(vocabulary, Some(matcher(payload, vocabulary)), Selection::Greedy, options)
        .unwrap();
    let chain = llama.chain(&[llama.library().create(state).unwrap().cast()]);
    let empty = llama.chain(&[]);
    let fresh = fill(logits);
    let (mut data, mut taken) = (fresh.clone(), [Duration::ZERO; 2]);
    let mut rounds = [Vec::new(), Vec::new()];
    let mut steps = 0;
    for _ in 0..ROUNDS {
        for (at, sampler) in [chain, empty].into_iter().enumerate() {
            steps = 0;
            for _ in 0..400 {
                // SAFETY: a chain of the library, an array that lives through the calls.
                unsafe { reset(sampler) };
                for _ in 0..3 {
                    // What a step moved is at the beginning: the rest is as it was.
                    data[..64].copy_from_slice(&fresh[..64]);
                    let mut array =
                        Array { data: data.as_mut_ptr(), size: data.len(), selected: -1, is_sorted: false };
                    let started = Instant::now();
                    // SAFETY: as above.
                    unsafe {
                        apply(sampler, &raw mut array);
                        accept(sampler, (*array.data).id);
                    }
                    taken[at] += started.elapsed();
                    steps += 1;
                }
            }
            rounds[at].push(std::mem::take(&mut taken[at]));
        }
    }
    let [ours, minus] = rounds.map(|taken| quartile(taken, steps));
    println!(
        r#"{{"case": "step in llama.cpp's chain, 30 actions, beyond the call", "ours": {ours}, "minus": {minus}}}"#
    );
}

fn fill(logits: &[f32]) -> Vec<TokenData> {
    logits.iter().zip(0..).map(|(&logit, id)| TokenData { id, logit, p: 0.0 }).collect()
}

/// A whole chain as one sampler after 64 tokens, beside llama.cpp's own; both fill the candidates before they apply.
fn whole_chain(llama: &Llama, vocabulary: &Arc<Vocabulary>, logits: &[f32], repeat: f32) {
    let accept: unsafe extern "C" fn(Sampler, i32) = llama.get("llama_sampler_accept");
    let apply: unsafe extern "C" fn(Sampler, *mut Array) = llama.get("llama_sampler_apply");
    let chain = presets::llama_cpp(&Params::default().seed(1).with("penalty_repeat", repeat)).unwrap();
    let selection = Selection::Chain(Box::new(chain));
    let state = SamplerState::new(vocabulary, None, selection, SamplerOptions::default()).unwrap();
    let ours = llama.chain(&[llama.library().create(state).unwrap().cast()]);
    let theirs = llama.default_chain(logits.len() as i32, repeat);
    for token in 0..64 {
        // SAFETY: chains of the library, and tokens of the vocabulary.
        unsafe {
            accept(ours, token * 97);
            accept(theirs, token * 97);
        }
    }
    let mut arrays = [fill(logits), fill(logits), fill(logits)];
    let [mine, other, filled] = &mut arrays;
    let refill = |data: &mut Vec<TokenData>| {
        // As llama_sampler_sample fills it.
        for (at, candidate) in data.iter_mut().enumerate() {
            *candidate = TokenData { id: at as i32, logit: logits[at], p: 0.0 };
        }
        Array { data: data.as_mut_ptr(), size: data.len(), selected: -1, is_sorted: false }
    };
    let [our_time, their_time, fill_time] = time(
        20,
        &mut || {},
        [
            // SAFETY: chains of the library, arrays that live through the calls.
            &mut || unsafe { apply(ours, &raw mut *black_box(&mut refill(mine))) },
            // SAFETY: as above.
            &mut || unsafe { apply(theirs, &raw mut *black_box(&mut refill(other))) },
            &mut || {
                black_box(refill(filled));
            },
        ],
    );
    let size = logits.len();
    println!(
        r#"{{"case": "default chain as one sampler, repeat penalty {repeat:.1}, {size} candidates, fill counted", "ours": {our_time}, "peer": {their_time}, "fill": {fill_time}}}"#
    );
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [model, payload, rest @ ..] = given.as_slice() else {
        panic!("native VOCABULARY.gguf PAYLOAD.json [libllama.so]");
    };
    let vocabulary = Arc::new(Vocabulary::from_gguf(Path::new(model)).unwrap());
    let payload = std::fs::read(payload).unwrap();
    through_c(&payload, &vocabulary);
    let Some(path) = rest.first() else { return };
    let llama = Llama::open(path);
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // About normal, with a deviation of 3.
        (0..12).map(|shift| ((state >> (5 * shift)) & 31) as f32 / 31.0).sum::<f32>() * 3.0 - 18.0
    };
    let logits: Vec<f32> = (0..vocabulary.len()).map(|_| next()).collect();
    in_a_chain(&llama, &payload, &vocabulary, &logits);
    whole_chain(&llama, &vocabulary, &logits, 1.0);
    whole_chain(&llama, &vocabulary, &logits, 1.1);
}
