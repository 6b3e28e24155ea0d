//! Parts whose borders are token boundaries, one after the other, in turn or repeated: a matcher that keeps a matcher for
//! each part that may be running.
//!
//! A token may both end one part and continue it, so that several parts may be running: threads. A thread that does not
//! take a token is put aside until the token is taken back; threads of the same part, continuation and state are one. The slow
//! version tries every assignment of tokens to parts.
//!
//! The tokens that end the generation are never part of a part. A part is complete where its matcher accepts, or would
//! accept after such a token; they are allowed where the whole composition may end.

use std::sync::{Arc, Mutex};

use super::plan::{Beginning, Place, Plan};
use super::searched::MAX_NUMBERED;
use crate::matcher::highest_temperature;
use crate::sequence::{History, Scratch};
use crate::{interrupt, AfterEnd, Matcher, Sequence, SpanProgress, States};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_grammar::rules::RuleBody;
use logitree_tokens::mask::{self, words_for, AllowedTokens};
use logitree_tokens::memo::Numbers;
use logitree_tokens::vocabulary::Vocabulary;

/// Parts that may be running at the same time.
pub const MAX_THREADS: usize = 256;

/// What all matchers of one composition share.
struct Shared {
    plan: Plan,
    /// The parts where they begin.
    parts: Vec<Box<dyn Matcher>>,
    after: AfterEnd,
    size: usize,
    numbers: Mutex<Numbers<StateKey, MAX_NUMBERED>>,
}

/// The places and their matchers' states, in order, and whether the composition may end.
type StateKey = (Box<[(Place, u64)]>, bool);

#[derive(Clone)]
struct Thread {
    /// The tokens of the sequence before it began.
    born: usize,
    place: Place,
    matcher: Box<dyn Matcher>,
    /// The tokens that the matcher had taken when the thread began.
    before: usize,
}

impl Thread {
    /// The tokens of the sequence, as far as it took them.
    fn read(&self) -> usize {
        self.born + self.matcher.accepted() - self.before
    }

    /// Forgets the tokens past the first `tokens` of the sequence.
    fn back(&mut self, tokens: usize) -> Result<()> {
        match self.read() - tokens {
            0 => Ok(()),
            more => self.matcher.rollback(more),
        }
    }
}

/// Where a sequence is, beside the threads that run.
#[derive(Clone)]
pub(super) struct At {
    /// The tokens that threads took.
    tokens: usize,
    /// Whether the composition may end here.
    complete: bool,
    /// The spans of what ran last, once nothing runs.
    spans: Option<Arc<SpanProgress>>,
}

/// A matcher over the parts of a composition.
pub(super) type ComposedMatcher = Sequence<ThreadStates>;

/// The threads that run, each in step with the sequence.
#[derive(Clone)]
pub(super) struct ThreadStates {
    shared: Arc<Shared>,
    /// In the order in which they began.
    threads: Vec<Thread>,
    /// Those that run no more, each with the number of tokens at which it did for the last time.
    gone: Vec<(usize, Arc<Thread>)>,
    few: Scratch<Vec<TokenId>>,
    words: Scratch<Vec<u32>>,
}

impl ComposedMatcher {
    /// # Errors
    /// [`ErrorKind::Constraint`] if nothing can be written; those of the parts.
    pub(super) fn new(
        order: RuleBody,
        parts: Vec<Box<dyn Matcher>>,
        vocabulary: &Arc<Vocabulary>,
    ) -> Result<Self> {
        let size = vocabulary.len();
        let after = AfterEnd::tokens(&[], vocabulary.end_tokens());
        let mut beginnings = Vec::with_capacity(parts.len());
        for part in &parts {
            if part.vocabulary_size() > size {
                let own = part.vocabulary_size();
                let message = format!("a part covers {own} tokens, the vocabulary has {size}");
                return Err(Error::new(ErrorKind::Constraint, message)
                    .help("build all parts with the vocabulary of the model that decodes"));
            }
            let mut first = part.fork();
            let empty = is_complete(&mut *first, after.ids())?;
            beginnings.push(Beginning { empty, more: !first.is_finished() });
        }
        let plan = Plan::new(order, &beginnings)?;
        let next = plan.start()?;
        if next.places.is_empty() {
            return Err(Error::new(
                ErrorKind::Constraint,
                "the composition allows nothing but the empty output",
            )
            .help("leave the constraint out: there is nothing to generate"));
        }
        let shared = Arc::new(Shared { plan, parts, after, size, numbers: Mutex::default() });
        let threads = shared.begun(next.places, 0);
        let (few, words) = (Scratch::default(), Scratch::default());
        let states = ThreadStates { shared, threads, gone: Vec::new(), few, words };
        states.check_threads(states.threads.len())?;
        let at = At { tokens: 0, complete: next.end, spans: None };
        let mut made = Sequence::begin(states, at);
        made.allowed()?;
        Ok(made)
    }
}

impl ThreadStates {
    /// Whether the tokens of the only thread are those that are allowed, so that they need no copy.
    fn lends(&mut self, complete: bool) -> Result<bool> {
        let ends = self.shared.after.ids();
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
            .help("let each part begin with what the part before it cannot contain"))
    }

    /// Has each thread take the token that comes at `at`: the parts that begin after it, and whether the composition may end
    /// then; `None` if no thread took it.
    fn follow(&mut self, at: &At, token: TokenId) -> Result<Option<(Vec<Thread>, bool)>> {
        let (mut begun, mut complete, mut running) = (Vec::new(), false, 0);
        for thread in &mut self.threads {
            if thread.matcher.is_finished() || !thread.matcher.take(token)? {
                continue;
            }
            running += 1;
            if is_complete(&mut *thread.matcher, self.shared.after.ids())? {
                let next = self.shared.plan.after(thread.place)?;
                complete |= next.end;
                begun.extend(next.places);
            }
        }
        begun.sort_unstable();
        begun.dedup();
        self.check_threads(running + begun.len())?;
        Ok((running > 0).then(|| (self.shared.begun(begun, at.tokens + 1), complete)))
    }

    /// Whether each thread is to be kept after the first `tokens`: not where it took none of them, where nothing may follow in
    /// it, or where another is in the same state.
    fn kept(&self, tokens: usize, begun: &mut Vec<Thread>) -> Vec<bool> {
        let runs = |thread: &Thread| thread.read() == tokens && !thread.matcher.is_finished();
        if let ([only], true) = (&self.threads[..], begun.is_empty()) {
            return vec![runs(only)];
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
        let kept = self.threads.iter().map(|thread| runs(thread) && is_new(thread)).collect();
        begun.retain(is_new);
        kept
    }

    /// Takes the threads that run back to the first `tokens` of the sequence.
    fn align(&mut self, tokens: usize) -> Result<()> {
        self.threads.iter_mut().try_for_each(|thread| thread.back(tokens))
    }

    /// Whether going back to the first `tokens` changes one thread only, so that it cannot fail halfway.
    fn is_one_step(&self, tokens: usize) -> bool {
        self.gone.last().is_none_or(|(last, _)| *last < tokens)
            && self.threads.iter().filter(|thread| thread.born <= tokens).count() <= 1
    }
}

impl Shared {
    /// The threads of parts that begin after so many tokens.
    fn begun(&self, places: Vec<Place>, born: usize) -> Vec<Thread> {
        let thread = |place: Place| {
            let matcher = self.parts[place.part as usize].fork();
            Thread { born, place, before: matcher.accepted(), matcher }
        };
        places.into_iter().map(thread).collect()
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

impl States for ThreadStates {
    type At = At;

    fn vocabulary_size(&self) -> usize {
        self.shared.size
    }

    fn after_end(&self) -> &AfterEnd {
        &self.shared.after
    }

    fn ends(&self) -> &[TokenId] {
        self.shared.after.ids()
    }

    fn is_accepting(&self, at: &At) -> bool {
        at.complete
    }

    fn is_finished(&self, at: &At) -> bool {
        at.complete && self.threads.is_empty()
    }

    fn named(&self, _at: &At, out: &mut Vec<TokenId>) {
        self.threads.iter().for_each(|thread| thread.matcher.named(out));
    }

    fn allowed<'a>(&'a mut self, at: &'a At) -> Result<AllowedTokens<'a>> {
        if self.lends(at.complete)? {
            return self.threads[0].matcher.allowed();
        }
        let (shared, Scratch(few), Scratch(all)) = (&*self.shared, &mut self.few, &mut self.words);
        few.clear();
        let mut wide = false;
        for thread in &mut self.threads {
            match thread.matcher.allowed()? {
                AllowedTokens::Ids(ids) => few.extend_from_slice(ids),
                allowed => {
                    if !wide {
                        all.clear();
                        all.resize(words_for(shared.size), 0);
                    }
                    match allowed {
                        AllowedTokens::Mask(words) => {
                            all.iter_mut().zip(words).for_each(|(to, from)| *to |= from);
                        }
                        all_tokens => all_tokens.write(shared.size, all),
                    }
                    wide = true;
                }
            }
        }
        few.retain(|id| !shared.after.ids().contains(id));
        if at.complete {
            few.extend_from_slice(shared.after.ids());
        }
        let none = if wide {
            mask::remove_bits(all, shared.after.ids());
            mask::insert_bits(all, few);
            mask::is_empty(all)
        } else {
            few.sort_unstable();
            few.dedup();
            few.is_empty()
        };
        if none {
            return Err(Error::new(
                ErrorKind::Constraint,
                "no token continues a part of the composition here",
            )
            .help("a part that only an end of generation ends needs end tokens in the vocabulary"));
        }
        Ok(if wide { AllowedTokens::Mask(all) } else { AllowedTokens::Ids(few) })
    }

    fn next(&mut self, at: &At, token: TokenId) -> Result<Option<At>> {
        if token as usize >= self.shared.size || self.ends().contains(&token) {
            return Ok(None);
        }
        let followed = self.follow(at, token);
        let Ok(Some((mut begun, complete))) = followed else {
            self.align(at.tokens)?;
            return followed.map(|_| None);
        };
        let mut next = At { tokens: at.tokens + 1, complete, spans: None };
        let kept = self.kept(next.tokens, &mut begun);
        if begun.is_empty() && !kept.contains(&true) {
            let mut last = self.threads.iter().filter(|thread| thread.read() == next.tokens);
            if let (Some(only), None) = (last.next(), last.next()) {
                next.spans = only.matcher.spans().cloned().map(Arc::new);
            }
        }
        if kept.contains(&false) {
            for (thread, kept) in std::mem::take(&mut self.threads).into_iter().zip(kept) {
                match kept {
                    true => self.threads.push(thread),
                    false => self.gone.push((at.tokens, Arc::new(thread))),
                }
            }
        }
        self.threads.append(&mut begun);
        Ok(Some(next))
    }

    fn back(&mut self, to: &At, _left: &mut [At]) -> Result<()> {
        let ran = |thread: &Thread| thread.born <= to.tokens;
        if self.is_one_step(to.tokens) {
            self.threads
                .iter_mut()
                .filter(|thread| ran(thread))
                .try_for_each(|thread| thread.back(to.tokens))?;
            self.threads.retain(ran);
            return Ok(());
        }
        // Of several, the one that cannot go back must find the others as they are.
        let kept = self.gone.partition_point(|(last, _)| *last < to.tokens);
        let again = self.gone[kept..].iter().map(|(_, thread)| &**thread);
        let mut threads: Vec<Thread> =
            self.threads.iter().chain(again).filter(|one| ran(one)).cloned().collect();
        threads.iter_mut().try_for_each(|thread| thread.back(to.tokens))?;
        threads.sort_unstable_by_key(|thread| (thread.born, thread.place));
        self.threads = threads;
        self.gone.truncate(kept);
        Ok(())
    }

    fn is_allowed(&mut self, _at: &At, token: TokenId) -> Result<Option<bool>> {
        if self.ends().contains(&token) {
            return Ok(Some(false));
        }
        for thread in &mut self.threads {
            if !thread.matcher.is_finished() && thread.matcher.is_allowed(token)? {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    fn state(&self, at: &At) -> Option<u64> {
        let number = |thread: &Thread| Some((thread.place, thread.matcher.state()?));
        let mut key: Vec<(Place, u64)> = self.threads.iter().map(number).collect::<Option<_>>()?;
        key.sort_unstable();
        let mut numbers = interrupt::lock(&self.shared.numbers);
        Some(numbers.number((key.into(), at.complete)))
    }

    fn bias(&mut self, _at: &At) -> Result<Option<(TokenId, f32)>> {
        let ends = self.shared.after.ids();
        match &mut self.threads[..] {
            [only] => Ok(only.matcher.bias()?.filter(|(token, _)| !ends.contains(token))),
            _ => Ok(None),
        }
    }

    fn temperature(&self, _at: &At) -> Option<f32> {
        highest_temperature(self.threads.iter().map(|thread| &*thread.matcher))
    }

    fn spans<'a>(&'a self, history: &'a History<At>) -> Option<&'a SpanProgress> {
        match &self.threads[..] {
            [only] => only.matcher.spans(),
            _ => history.at().spans.as_deref(),
        }
    }

    fn is_free(&self, at: &At) -> bool {
        matches!(&self.threads[..], [only] if at.complete && only.matcher.is_free())
    }

    fn expected(&self, _at: &At) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for text in self.threads.iter().flat_map(|thread| thread.matcher.expected()) {
            if !all.contains(&text) {
                all.push(text);
            }
        }
        all
    }

    fn expected_after(&mut self, _at: &At, bytes: &[u8]) -> Result<Vec<String>> {
        let mut all: Vec<String> = Vec::new();
        for thread in &mut self.threads {
            if thread.matcher.accepted_prefix(bytes)? == bytes.len() {
                all.extend(thread.matcher.expected_after(bytes)?);
            }
        }
        Ok(all)
    }

    fn accepted_prefix(&mut self, _at: &At, bytes: &[u8]) -> Result<usize> {
        let mut most = 0;
        for thread in &mut self.threads {
            most = most.max(thread.matcher.accepted_prefix(bytes)?);
        }
        Ok(most)
    }

    fn is_ready(&self, _at: &At) -> bool {
        self.threads.iter().all(|thread| thread.matcher.is_ready())
    }
}
