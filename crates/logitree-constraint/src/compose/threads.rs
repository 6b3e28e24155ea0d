//! Parts whose borders are token boundaries, one after the other, in turn or repeated: a matcher that keeps a matcher for
//! each part that may be running.
//!
//! A token may both end one part and continue it, so that several parts may be running: threads. A thread that does not
//! take a token is dropped and kept in the history; threads of the same part, continuation and state are one. The slow
//! version tries every assignment of tokens to parts.
//!
//! The tokens that end the generation are never part of a part. A part is complete where its matcher accepts, or would
//! accept after such a token; they are allowed where the whole composition may end.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::plan::{Beginning, Place, Plan, Shape};
use crate::history::check_rollback;
use crate::{AfterEnd, Matcher, SpanProgress};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{words_for, AllowedTokens};
use logitree_tokens::vocabulary::Vocabulary;

/// Parts that may be running at the same time.
pub const MAX_THREADS: usize = 256;

/// A part of a composition over tokens, not running yet.
pub(super) struct Part {
    pub matcher: Box<dyn Matcher>,
    /// The parts of the outermost sequence that it covers.
    pub covers: Range<usize>,
}

/// What all matchers of one composition share.
struct Shared {
    plan: Plan,
    parts: Vec<Part>,
    ends: Box<[TokenId]>,
    after: AfterEnd,
    size: usize,
    states: Mutex<FxHashMap<StateKey, u64>>,
}

/// The places and their matchers' states, in order, and whether the composition may end.
type StateKey = (Box<[(Place, u64)]>, bool);

struct Thread {
    place: Place,
    matcher: Box<dyn Matcher>,
}

impl Thread {
    fn fork(&self) -> Thread {
        Thread { place: self.place, matcher: self.matcher.fork() }
    }
}

/// What a token did.
#[derive(Clone)]
enum Step {
    /// Each thread took it, and nothing began.
    Kept {
        complete: bool,
    },
    Changed(Arc<Changed>),
    /// It ended the generation.
    Ended,
}

struct Changed {
    complete: bool,
    /// The threads before, in order; `None` for those that are still there.
    before: Vec<Option<Thread>>,
}

/// A matcher over the parts of a composition.
pub struct ComposedMatcher {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
    /// Whether the composition may end here.
    complete: bool,
    ended: bool,
    history: Vec<Step>,
    past_end: usize,
    few: Vec<TokenId>,
    words: Vec<u32>,
}

impl ComposedMatcher {
    /// # Errors
    /// [`ErrorKind::Constraint`] if nothing can be written; those of the parts.
    pub(super) fn new(shape: &Shape, parts: Vec<Part>, vocabulary: &Arc<Vocabulary>) -> Result<Self> {
        let size = vocabulary.len();
        let ends: Box<[TokenId]> = vocabulary.end_of_generation().into();
        let mut beginnings = Vec::with_capacity(parts.len());
        for part in &parts {
            if part.matcher.vocabulary_size() > size {
                let own = part.matcher.vocabulary_size();
                let message = format!("a part covers {own} tokens, the vocabulary has {size}");
                return Err(Error::new(ErrorKind::Constraint, message)
                    .help("build all parts with the vocabulary of the model that decodes"));
            }
            let mut first = part.matcher.fork();
            let empty = is_complete(&mut *first, &ends)?;
            beginnings.push(Beginning { empty, more: !first.is_finished() });
        }
        let plan = Plan::new(shape, beginnings)?;
        let next = plan.start()?;
        if next.places.is_empty() {
            return Err(Error::new(
                ErrorKind::Constraint,
                "the composition allows nothing but the empty output",
            )
            .help("leave the constraint out: there is nothing to generate"));
        }
        let after = AfterEnd::tokens(&[], &ends);
        let shared = Arc::new(Shared { plan, parts, ends, after, size, states: Mutex::default() });
        let threads = next.places.iter().map(|&place| shared.begun(place)).collect();
        let mut made = ComposedMatcher {
            shared,
            threads,
            complete: next.end,
            ended: false,
            history: Vec::new(),
            past_end: 0,
            few: Vec::new(),
            words: Vec::new(),
        };
        made.check_threads(made.threads.len())?;
        made.allowed()?;
        Ok(made)
    }

    /// The parts of the outermost sequence that may be running here or begin here: one range of parts for each
    /// possibility, in order, without repeats. Parts that share tokens count as one range. Empty at the end.
    pub fn active(&self) -> Vec<Range<usize>> {
        let covers = |thread: &Thread| self.shared.parts[thread.place.part as usize].covers.clone();
        let mut ranges: Vec<Range<usize>> = match self.ended {
            true => Vec::new(),
            false => self.threads.iter().map(covers).collect(),
        };
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup();
        ranges
    }

    /// Whether the tokens of the only thread are those that are allowed, so that they need no copy.
    fn lends(&mut self) -> Result<bool> {
        let (ends, complete) = (&self.shared.ends, self.complete);
        let [only] = &mut self.threads[..] else { return Ok(false) };
        Ok(match only.matcher.allowed()? {
            AllowedTokens::All => false,
            allowed => ends.iter().all(|&end| allowed.contains(end) == complete),
        })
    }

    fn check_threads(&self, threads: usize) -> Result<()> {
        if threads <= MAX_THREADS {
            return Ok(());
        }
        let message = format!("more than {MAX_THREADS} parts of a composition may be running here");
        Err(Error::new(ErrorKind::Limit, message)
            .at(format!("token {} of the text", self.history.len()))
            .help("let each part begin with what the part before it cannot contain"))
    }

    fn is_end(&self, token: TokenId) -> bool {
        self.shared.ends.contains(&token)
    }

    /// Has each thread take the token; says of each whether it did. On an error, and where no one did, nothing changed.
    fn offer(&mut self, token: TokenId) -> Result<Vec<bool>> {
        let mut taken = Vec::with_capacity(self.threads.len());
        for at in 0..self.threads.len() {
            let matcher = &mut self.threads[at].matcher;
            let took = if matcher.is_finished() { Ok(false) } else { matcher.take(token) };
            match took {
                Ok(took) => taken.push(took),
                Err(error) => {
                    self.undo(&taken)?;
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    fn undo(&mut self, taken: &[bool]) -> Result<()> {
        for (thread, _) in self.threads.iter_mut().zip(taken).filter(|(_, &taken)| taken) {
            thread.matcher.rollback(1)?;
        }
        Ok(())
    }

    /// The parts that begin after threads that took a token, and whether the composition may end.
    fn follow(&mut self, taken: &[bool]) -> Result<(Vec<Thread>, bool)> {
        let (mut begun, mut complete): (Vec<Place>, bool) = (Vec::new(), false);
        for (thread, _) in self.threads.iter_mut().zip(taken).filter(|(_, &taken)| taken) {
            if is_complete(&mut *thread.matcher, &self.shared.ends)? {
                let next = self.shared.plan.after(thread.place)?;
                complete |= next.end;
                begun.extend(next.places);
            }
        }
        begun.sort_unstable();
        begun.dedup();
        let running = taken.iter().filter(|&&taken| taken).count();
        self.check_threads(running + begun.len())?;
        Ok((begun.into_iter().map(|place| self.shared.begun(place)).collect(), complete))
    }

    /// Whether each thread that took the token is to be kept: not where nothing may follow in it, and not where another
    /// is in the same state.
    fn kept(&self, taken: &[bool], begun: &mut Vec<Thread>) -> Vec<bool> {
        let mut kept: Vec<bool> = Vec::with_capacity(taken.len());
        if begun.is_empty() && self.threads.len() == 1 {
            kept.push(taken[0] && !self.threads[0].matcher.is_finished());
            return kept;
        }
        let mut seen: Vec<(Place, u64)> = Vec::new();
        let mut is_new = |thread: &Thread| match thread.matcher.state() {
            Some(state) if seen.contains(&(thread.place, state)) => false,
            Some(state) => {
                seen.push((thread.place, state));
                true
            }
            None => true,
        };
        for (thread, &taken) in self.threads.iter().zip(taken) {
            kept.push(taken && !thread.matcher.is_finished() && is_new(thread));
        }
        begun.retain(is_new);
        kept
    }

    /// Undoes steps, last first. All threads of the state before come back.
    fn back(&mut self, n: usize) -> Result<()> {
        let mut pending = 0;
        for _ in 0..n {
            match self.history.pop() {
                None => break,
                Some(Step::Ended) => self.ended = false,
                Some(Step::Kept { complete }) => {
                    pending += 1;
                    self.complete = complete;
                }
                Some(Step::Changed(changed)) => {
                    let kept = changed.before.iter().filter(|thread| thread.is_none()).count();
                    self.threads.truncate(kept);
                    for thread in &mut self.threads {
                        thread.matcher.rollback(pending + 1)?;
                    }
                    pending = 0;
                    self.complete = changed.complete;
                    let gone: Vec<Option<Thread>> = match Arc::try_unwrap(changed) {
                        Ok(changed) => changed.before,
                        Err(shared) => {
                            shared.before.iter().map(|thread| thread.as_ref().map(Thread::fork)).collect()
                        }
                    };
                    let mut kept = std::mem::take(&mut self.threads).into_iter();
                    self.threads =
                        gone.into_iter().filter_map(|thread| thread.or_else(|| kept.next())).collect();
                }
            }
        }
        if pending > 0 {
            for thread in &mut self.threads {
                thread.matcher.rollback(pending)?;
            }
        }
        Ok(())
    }
}

impl Shared {
    fn begun(&self, place: Place) -> Thread {
        Thread { place, matcher: self.parts[place.part as usize].matcher.fork() }
    }
}

/// Whether a part may end here, with or without a token that ends the generation.
pub(super) fn is_complete(matcher: &mut dyn Matcher, ends: &[TokenId]) -> Result<bool> {
    if matcher.is_accepting() {
        return Ok(true);
    }
    for &end in ends {
        if matcher.take(end)? {
            let complete = matcher.is_accepting();
            matcher.rollback(1)?;
            if complete {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

impl Matcher for ComposedMatcher {
    fn vocabulary_size(&self) -> usize {
        self.shared.size
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        if self.is_finished() {
            return self.shared.after.allowed();
        }
        if self.lends()? {
            return self.threads[0].matcher.allowed();
        }
        let shared = Arc::clone(&self.shared);
        self.few.clear();
        let mut wide = false;
        for thread in &mut self.threads {
            match thread.matcher.allowed()? {
                AllowedTokens::Ids(ids) => self.few.extend_from_slice(ids),
                allowed => {
                    if !wide {
                        self.words.clear();
                        self.words.resize(words_for(shared.size), 0);
                    }
                    let covered = thread_words(allowed, shared.size);
                    match covered {
                        Some(words) => self.words.iter_mut().zip(words).for_each(|(to, from)| *to |= from),
                        None => AllowedTokens::All.write(shared.size, &mut self.words),
                    }
                    wide = true;
                }
            }
        }
        self.few.retain(|id| !shared.ends.contains(id));
        if self.complete {
            self.few.extend_from_slice(&shared.ends);
        }
        let none = if wide {
            shared.ends.iter().for_each(|&id| self.words[id as usize / 32] &= !(1 << (id % 32)));
            self.few.iter().for_each(|&id| self.words[id as usize / 32] |= 1 << (id % 32));
            self.words.iter().all(|&word| word == 0)
        } else {
            self.few.sort_unstable();
            self.few.dedup();
            self.few.is_empty()
        };
        if none {
            return Err(Error::new(
                ErrorKind::Constraint,
                "no token continues a part of the composition here",
            )
            .at(format!("token {} of the text", self.history.len()))
            .help("a part that only an end of generation ends needs end tokens in the vocabulary"));
        }
        Ok(if wide { AllowedTokens::Mask(&self.words) } else { AllowedTokens::Ids(&self.few) })
    }

    fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        if self.is_finished() {
            return Ok(self.shared.after.takes(token));
        }
        if self.is_end(token) {
            return Ok(self.complete);
        }
        for thread in &mut self.threads {
            if !thread.matcher.is_finished() && thread.matcher.is_allowed(token)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.take(token)? {
            return Ok(());
        }
        let mut error = Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
            .at(format!("token {} of the text", self.accepted()));
        let expected = self.expected();
        if !expected.is_empty() {
            error = error.help(format!("expected: {}", expected.join("; or ")));
        }
        Err(error)
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        if self.is_finished() {
            let takes = self.shared.after.takes(token);
            self.past_end += usize::from(takes);
            return Ok(takes);
        }
        if self.is_end(token) || token as usize >= self.shared.size {
            if self.complete && self.is_end(token) {
                self.ended = true;
                self.history.push(Step::Ended);
                return Ok(true);
            }
            return Ok(false);
        }
        let taken = self.offer(token)?;
        if !taken.contains(&true) {
            return Ok(false);
        }
        let (mut begun, complete) = match self.follow(&taken) {
            Ok(next) => next,
            Err(error) => {
                self.undo(&taken)?;
                return Err(error);
            }
        };
        let kept = self.kept(&taken, &mut begun);
        let before = std::mem::replace(&mut self.complete, complete);
        if begun.is_empty() && kept.iter().all(|&kept| kept) {
            self.history.push(Step::Kept { complete: before });
            return Ok(true);
        }
        let mut gone = Vec::with_capacity(kept.len());
        let mut threads = Vec::with_capacity(kept.len() + begun.len());
        for (at, mut thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            if kept[at] {
                threads.push(thread);
                gone.push(None);
            } else {
                if taken[at] {
                    thread.matcher.rollback(1)?;
                }
                gone.push(Some(thread));
            }
        }
        threads.append(&mut begun);
        self.threads = threads;
        self.history.push(Step::Changed(Arc::new(Changed { complete: before, before: gone })));
        Ok(true)
    }

    fn spans(&self) -> Option<&SpanProgress> {
        match &self.threads[..] {
            [only] => only.matcher.spans(),
            _ => None,
        }
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        check_rollback(n, self.accepted())?;
        let late = n.min(self.past_end);
        self.past_end -= late;
        self.back(n - late)
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(ComposedMatcher {
            shared: Arc::clone(&self.shared),
            threads: self.threads.iter().map(Thread::fork).collect(),
            complete: self.complete,
            ended: self.ended,
            history: self.history.clone(),
            past_end: self.past_end,
            few: Vec::new(),
            words: Vec::new(),
        })
    }

    fn reset(&mut self) {
        // Cannot fail: so many were accepted.
        drop(self.rollback(self.accepted()));
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        let mut run = Vec::new();
        let walked = super::forced::forced_run(self, &mut run);
        self.rollback(run.len())?;
        walked.map(|()| out.append(&mut run))
    }

    fn is_accepting(&self) -> bool {
        self.complete || self.ended
    }

    fn is_finished(&self) -> bool {
        self.ended || self.complete && self.threads.is_empty()
    }

    fn after_end(&self) -> &AfterEnd {
        &self.shared.after
    }

    fn state(&self) -> Option<u64> {
        if self.ended {
            return Some(u64::MAX);
        }
        let number = |thread: &Thread| Some((thread.place, thread.matcher.state()?));
        let mut key: Vec<(Place, u64)> = self.threads.iter().map(number).collect::<Option<_>>()?;
        key.sort_unstable();
        let mut states = self.shared.states.lock().unwrap_or_else(PoisonError::into_inner);
        let next = states.len() as u64;
        Some(*states.entry((key.into(), self.complete)).or_insert(next))
    }

    fn bias(&mut self) -> Result<Option<(TokenId, f32)>> {
        let ends = &self.shared.ends;
        match &mut self.threads[..] {
            [only] if !self.ended => Ok(only.matcher.bias()?.filter(|(token, _)| !ends.contains(token))),
            _ => Ok(None),
        }
    }

    fn is_free(&self) -> bool {
        matches!(&self.threads[..], [only] if self.complete && only.matcher.is_free())
    }

    fn expected(&self) -> Vec<String> {
        if self.ended {
            return Vec::new();
        }
        let mut all: Vec<String> = Vec::new();
        for text in self.threads.iter().flat_map(|thread| thread.matcher.expected()) {
            if !all.contains(&text) {
                all.push(text);
            }
        }
        all
    }

    fn expected_after(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        let mut all: Vec<String> = Vec::new();
        for thread in &mut self.threads {
            if thread.matcher.taken(bytes)? == bytes.len() {
                all.extend(thread.matcher.expected_after(bytes)?);
            }
        }
        Ok(all)
    }

    fn taken(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut most = 0;
        let running = if self.ended { &mut [][..] } else { &mut self.threads[..] };
        for thread in running {
            most = most.max(thread.matcher.taken(bytes)?);
        }
        Ok(most)
    }

    fn is_ready(&self) -> bool {
        self.threads.iter().all(|thread| thread.matcher.is_ready())
    }

    fn accepted(&self) -> usize {
        self.history.len() + self.past_end
    }
}

/// The words of a mask; `None` where every token is allowed.
fn thread_words(allowed: AllowedTokens<'_>, size: usize) -> Option<&[u32]> {
    match allowed {
        AllowedTokens::Mask(words) => Some(&words[..words_for(size).min(words.len())]),
        AllowedTokens::All | AllowedTokens::Ids(_) => None,
    }
}
