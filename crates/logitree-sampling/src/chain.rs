//! The chain: samplers in order, the token they pick, and the state that follows accepted tokens.
//!
//! It does nothing that a caller could not do with the samplers one by one.

mod align;
mod effects;
mod snapshot;
mod steps;

use super::measures::{likeliest, Model};
use super::registry::{self, SamplerRow};
use super::{Candidates, Floats, Generator, Measures, OnGreatest, OnRejected, Sampler, Seed, TokenArray};
use crate::{Error, ErrorKind, Result, TokenId};
use align::Align;
pub use effects::Effect;
use effects::EffectRecorder;
use logitree_tokens::mask::AllowedTokens;
pub use steps::{step_words, Step};

/// How a chain computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The fast paths: the same survivors and the same token as llama.cpp, except where its f32 rounding or its order
    /// of equal logits decides.
    #[default]
    Fast,
    /// llama.cpp's own steps, one by one: the same survivors in the same order and the same token, ties and
    /// rounding included, at about llama.cpp's speed.
    Parity,
}

/// Samplers in order. Cloning gives an independent chain in the same state.
///
/// ```
/// use logitree_sampling::{Chain, Greedy, Penalties};
/// use logitree_tokens::mask::AllowedTokens;
///
/// let mut chain = Chain::new(vec![Box::new(Penalties::new(64, 2.0, 0.0, 0.0)?), Box::new(Greedy)])?;
/// let (logits, allowed) = ([0.5, 2.0, 9.0, 1.5], AllowedTokens::Ids(&[0, 1, 3]));
/// assert_eq!(chain.sample(&logits, allowed)?, 1);
/// let snapshot = chain.snapshot();
/// assert_eq!(chain.sample(&logits, allowed)?, 3); // 1 was accepted: its logit is halved
/// chain.restore(&snapshot)?;
/// chain.rollback(1)?;
/// assert_eq!(chain.sample(&logits, allowed)?, 1);
/// # Ok::<(), logitree_sampling::Error>(())
/// ```
///
/// Law: after n tokens were accepted, `rollback(n)` leaves the state from before their steps, draws included.
#[derive(Debug, Clone)]
pub struct Chain {
    samplers: Vec<Box<dyn Sampler>>,
    /// The samplers' rows in the table.
    rows: Vec<Option<&'static SamplerRow>>,
    mode: Mode,
    candidates: Candidates<'static>,
    array: TokenArray,
    picked: Option<TokenId>,
    accepted: usize,
    recorder: EffectRecorder,
    measuring: bool,
    measures: Option<Measures>,
    /// How many of the likeliest candidates each step lists.
    listing: Option<usize>,
    likeliest: Option<(f64, Vec<(TokenId, f64)>)>,
    align: Align,
}

impl Chain {
    /// The chain of `samplers`, in this order. Without a selecting one (greedy, dist) it can only be applied.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if anything follows a selecting sampler.
    pub fn new(samplers: Vec<Box<dyn Sampler>>) -> Result<Chain> {
        let chosen = samplers.iter().position(|s| s.selects());
        if let Some(at) = chosen.filter(|at| at + 1 < samplers.len()) {
            let (name, after) = (samplers[at].name(), samplers[at + 1].name());
            return Err(Error::new(ErrorKind::Sampling, format!("{after} follows {name}, which selects"))
                .at(format!("sampler {} of {}", at + 2, samplers.len()))
                .help("let the selecting sampler be the last"));
        }
        Ok(Chain::of(samplers))
    }

    /// The chain of samplers whose order is known to be valid.
    pub(super) fn of(samplers: Vec<Box<dyn Sampler>>) -> Chain {
        let (candidates, recorder) = (Candidates::default(), EffectRecorder::default());
        let (mode, array) = (Mode::Fast, TokenArray::default());
        let (picked, accepted, measuring, measures) = (None, 0, false, None);
        let align = Align::default();
        let rows = samplers.iter().map(|sampler| registry::find(sampler.name())).collect();
        Chain {
            samplers,
            rows,
            mode,
            candidates,
            array,
            picked,
            accepted,
            recorder,
            measuring,
            measures,
            listing: None,
            likeliest: None,
            align,
        }
    }

    /// The same chain, computing in `mode` from the next step on.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for [`Mode::Parity`] if a sampler is not one of llama.cpp's.
    pub fn with_mode(mut self, mode: Mode) -> Result<Chain> {
        let strange = self.samplers.iter_mut().find_map(|s| s.reference().is_none().then_some(s.name()));
        if let (Mode::Parity, Some(name)) = (mode, strange) {
            return Err(Error::new(ErrorKind::Sampling, format!("llama.cpp has no sampler like {name}"))
                .help("parity mode takes llama.cpp's samplers only; use fast mode"));
        }
        self.mode = mode;
        Ok(self)
    }

    /// Whether each step from now on is measured ([`Chain::measures`]).
    pub fn measure(&mut self, on: bool) {
        self.measuring = on;
        self.measures = None;
    }

    /// Whether each step is measured.
    pub fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// What the last step's distributions were, if steps are measured and it picked a token.
    pub fn measures(&self) -> Option<Measures> {
        self.measures
    }

    /// Whether each step from now on lists what is likeliest of what the chain left, and how many of it
    /// ([`Chain::likeliest`]). It changes nothing that is drawn.
    pub fn list_likeliest(&mut self, n: Option<usize>) {
        self.listing = n;
        self.likeliest = None;
    }

    /// Of the last step, log p of the picked token and of the likeliest tokens in what the chain left, in nats; `None`
    /// where steps do not list them, or it picked nothing.
    pub fn likeliest(&self) -> Option<(f64, &[(TokenId, f64)])> {
        self.likeliest.as_ref().map(|(own, top)| (*own, &top[..]))
    }

    /// How it computes.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Applies the chain, picks the next token and accepts it, as llama.cpp's `llama_sampler_sample` does.
    ///
    /// # Errors
    /// Those of [`Chain::draw`]; nothing is accepted then.
    pub fn sample<'l>(
        &mut self,
        logits: impl Into<Floats<'l>>,
        allowed: AllowedTokens<'_>,
    ) -> Result<TokenId> {
        let token = self.draw(logits, allowed)?;
        self.accept(token);
        Ok(token)
    }

    /// Applies the chain and picks the next token, without accepting it.
    ///
    /// # Errors
    /// Those of [`Chain::apply`] and [`Chain::pick`].
    pub fn draw<'l>(&mut self, logits: impl Into<Floats<'l>>, allowed: AllowedTokens<'_>) -> Result<TokenId> {
        self.check_selects()?;
        self.run(logits.into(), allowed, None, false)?;
        self.pick()
    }

    /// Applies the chain, so that [`Chain::candidates`] lists what survived with probabilities that sum to one.
    /// A drawing sampler draws. `effects` is cleared and filled with what each sampler did, which costs time.
    ///
    /// # Errors
    /// [`ErrorKind::Logits`] for NaN or +inf among the allowed logits, and if no candidate is left;
    /// [`ErrorKind::Mask`] for an allowed id without a logit. Nothing is drawn then, unless a sampler drew before the
    /// one that left no candidate.
    pub fn apply<'l>(
        &mut self,
        logits: impl Into<Floats<'l>>,
        allowed: AllowedTokens<'_>,
        effects: Option<&mut Vec<Effect>>,
    ) -> Result<()> {
        self.run(logits.into(), allowed, effects, true)
    }

    /// As [`Chain::apply`] with effects. Each names the tokens of `watched` that its sampler cut.
    ///
    /// # Errors
    /// Those of [`Chain::apply`].
    pub fn apply_watching<'l>(
        &mut self,
        logits: impl Into<Floats<'l>>,
        allowed: AllowedTokens<'_>,
        watched: &[TokenId],
        effects: &mut Vec<Effect>,
    ) -> Result<()> {
        self.recorder.watch(watched);
        let done = self.apply(logits, allowed, Some(effects));
        self.recorder.watch(&[]);
        done
    }

    fn run(
        &mut self,
        logits: Floats<'_>,
        allowed: AllowedTokens<'_>,
        mut effects: Option<&mut Vec<Effect>>,
        list: bool,
    ) -> Result<()> {
        self.picked = None;
        let buffers = std::mem::take(&mut self.candidates);
        let is_draw = effects.is_none() && !list;
        let mut c = match is_draw && self.ignores_rejected() {
            true => Candidates::begin_wide(buffers, logits, allowed)?,
            false => Candidates::begin(buffers, logits, allowed)?,
        };
        self.measures = None;
        self.likeliest = None;
        let model = self.measuring.then(|| Model::measure(logits, allowed, &c));
        if let Some(effects) = effects.as_deref_mut() {
            effects.clear();
            self.recorder.open(&c);
        }
        if self.align.steer(&mut c)? {
            if let Some(effects) = effects.as_deref_mut() {
                effects.push(self.recorder.effect("steering", Some(&c)));
            }
        }
        let set = self.align.set(&self.rows, &mut self.samplers, &mut c);
        let n = logits.len();
        let done = set.and_then(|()| match self.mode {
            Mode::Fast => self.run_samplers(&mut c, n, allowed, effects),
            Mode::Parity => self.run_reference(&mut c, n, allowed, effects),
        });
        self.align.restore(&self.rows, &mut self.samplers);
        done?;
        self.picked = c.selected().and_then(|at| c.id_at(at));
        if let Some(banned) = self.picked.filter(|&token| !allowed.contains(token)) {
            self.picked = None;
            return Err(Error::new(
                ErrorKind::Mask,
                format!("token {banned} was picked, which is not allowed"),
            )
            .help("a sampler of the chain adds or revives candidates; leave it out"));
        }
        if let (Some(model), Some(token)) = (model, self.picked) {
            self.measures = Some(model.with(logits, token, &c));
        }
        if self.picked.is_some() {
            self.likeliest = self.listing.map(|n| likeliest(&c, n));
        }
        if list {
            c.list();
            c.normalise();
        }
        self.candidates = c.end();
        Ok(())
    }

    /// Whether candidates at -inf make no difference to a draw, where [`MANY`] others are above that.
    fn ignores_rejected(&self) -> bool {
        if self.align.changes_parameters() || self.mode != Mode::Fast {
            return false;
        }
        let mut many = !self.align.is_set();
        for sampler in self.samplers.iter().filter(|sampler| !sampler.is_noop()) {
            match sampler.on_rejected() {
                OnRejected::Counts => return false,
                // What comes after it meets those that are left only.
                OnRejected::Removes | OnRejected::RemovesFromMany if many => return true,
                OnRejected::RemovesFromMany => return false,
                OnRejected::Ignores | OnRejected::Removes => {}
                OnRejected::Adds => many = false,
            }
        }
        true
    }

    /// The samplers on their fast paths.
    fn run_samplers(
        &mut self,
        c: &mut Candidates<'_>,
        n: usize,
        allowed: AllowedTokens<'_>,
        mut effects: Option<&mut Vec<Effect>>,
    ) -> Result<()> {
        for sampler in &mut self.samplers {
            let skip = sampler.is_noop();
            if !skip {
                sampler.apply(c);
                if let Some(fault) = c.take_fault().or_else(|| {
                    let ids = c.ids().iter().copied();
                    sampler.adds().then(|| unlisted(sampler.name(), ids, allowed, n)).flatten()
                }) {
                    return Err(fault);
                }
            }
            if let Some(effects) = effects.as_deref_mut() {
                let still = skip || sampler.selects();
                effects.push(self.recorder.effect(sampler.name(), if still { None } else { Some(&*c) }));
            }
        }
        Ok(())
    }

    /// The samplers as llama.cpp computes them, over its own array.
    fn run_reference(
        &mut self,
        c: &mut Candidates<'_>,
        n: usize,
        allowed: AllowedTokens<'_>,
        mut effects: Option<&mut Vec<Effect>>,
    ) -> Result<()> {
        self.array.begin(c);
        for sampler in &mut self.samplers {
            let skip = sampler.is_noop();
            if let (false, Some(reference)) = (skip, sampler.reference()) {
                reference.apply_reference(&mut self.array);
                let ids = self.array.data.iter().map(|c| c.id);
                let added = sampler.adds().then(|| unlisted(sampler.name(), ids, allowed, n)).flatten();
                if let Some(fault) = self.array.fault.take().or(added) {
                    return Err(fault);
                }
            }
            if let Some(effects) = effects.as_deref_mut() {
                let still = skip || sampler.selects();
                effects.push(self.recorder.effect(sampler.name(), (!still).then_some(&self.array)));
            }
        }
        self.array.check();
        if let Some(fault) = self.array.fault.take() {
            return Err(fault);
        }
        c.take(&self.array);
        Ok(())
    }

    /// What each sampler would do to the logits in the next step. It works on a copy: nothing is drawn from this
    /// chain's generators and no state changes.
    ///
    /// # Errors
    /// Those of [`Chain::apply`].
    pub fn explain<'l>(
        &self,
        logits: impl Into<Floats<'l>>,
        allowed: AllowedTokens<'_>,
    ) -> Result<Vec<Effect>> {
        let mut effects = Vec::new();
        self.clone().apply(logits, allowed, Some(&mut effects))?;
        Ok(effects)
    }

    /// The survivors of the last [`Chain::apply`]: ids, logits and probabilities, in order. After [`Chain::draw`] it
    /// may be empty, because a draw need not list them.
    pub fn candidates(&self) -> &Candidates<'static> {
        &self.candidates
    }

    /// The token that the last [`Chain::apply`] selected; the same on every call.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if no sampler selects, [`ErrorKind::State`] if nothing was applied.
    pub fn pick(&mut self) -> Result<TokenId> {
        self.check_selects()?;
        self.picked.ok_or_else(|| {
            Error::new(ErrorKind::State, "nothing was applied yet").help("call apply first, or sample")
        })
    }

    fn check_selects(&self) -> Result<()> {
        if self.samplers.last().is_some_and(|s| s.selects()) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Sampling, "no sampler of the chain selects a token")
            .help("end the chain with greedy or dist"))
    }

    /// Records an accepted token, picked here or elsewhere (a prompt's, too).
    pub fn accept(&mut self, token: TokenId) {
        for sampler in &mut self.samplers {
            sampler.accept(token);
        }
        self.align.accept();
        self.accepted += 1;
    }

    /// Forgets the last `n` accepted tokens and all that was drawn for them.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if fewer were accepted; nothing is changed.
    pub fn rollback(&mut self, n: usize) -> Result<()> {
        if n > self.accepted {
            let message = format!("rollback of {n} tokens, but {} were accepted", self.accepted);
            return Err(Error::new(ErrorKind::State, message));
        }
        if n > 0 {
            for sampler in &mut self.samplers {
                sampler.rollback(n);
            }
            self.align.rollback(n);
            self.accepted -= n;
            self.picked = None;
        }
        Ok(())
    }

    /// Forgets what was drawn since the last accepted token, and what was set for one step: for a step that failed. Samplers of
    /// the host program are left as they are.
    pub fn rewind(&mut self) {
        self.samplers
            .iter_mut()
            .filter(|sampler| !sampler.is_foreign())
            .for_each(|sampler| sampler.rollback(0));
        if self.rule().is_some_and(|rule| !rule.is_foreign()) {
            self.align.rollback(0);
        }
        self.picked = None;
        self.align.bias.clear();
        self.align.temperature = None;
    }

    /// Whether it picks the greatest logit, the first of equal ones, and looks at nothing else: what it picks from more
    /// tokens it also picks from fewer that have it.
    pub fn takes_greatest(&self) -> bool {
        if self.measuring || self.align.is_set() {
            return false;
        }
        // Only fast mode lists equal logits in the order of their tokens.
        let (fast, mut leaves) = (self.mode == Mode::Fast, false);
        for sampler in self.samplers.iter().filter(|sampler| !sampler.is_noop()) {
            match sampler.on_greatest() {
                OnGreatest::Leaves if fast || sampler.selects() => leaves = true,
                OnGreatest::Keeps if fast => {}
                _ if leaves && sampler.selects() => {}
                _ => return false,
            }
        }
        leaves
    }

    /// Advances as [`Chain::draw`] would with one sole candidate, so that a forced token can be taken without
    /// logits and the tokens after it stay the same. Accept it afterwards. See [`Chain::vetoes`].
    pub fn forced(&mut self) {
        for sampler in &mut self.samplers {
            sampler.forced();
        }
        self.align.forced();
    }

    /// Returns to the initial state: same seed, nothing accepted, no steering.
    pub fn reset(&mut self) {
        for sampler in &mut self.samplers {
            sampler.reset();
        }
        self.align.reset();
        self.align.steering.clear();
        self.accepted = 0;
        self.picked = None;
    }

    /// Starts over as sequence `sequence` of the same seed, for a row of a batch that draws independently. Its steering
    /// stays.
    pub fn resequence(&mut self, sequence: u32) {
        for sampler in &mut self.samplers {
            sampler.reset();
            sampler.resequence(sequence);
        }
        self.align.reset();
        self.accepted = 0;
        self.picked = None;
    }

    /// From here on draws as a later sequence of the same seed would after accepting the same tokens without a draw.
    pub fn shift_sequence(&mut self, further: u32) {
        for sampler in &mut self.samplers {
            let own = sampler.seed().filter(|seed| seed.generator == Generator::Philox);
            let sequence = own.map_or(0, |seed| seed.sequence).wrapping_add(further);
            sampler.resequence(sequence);
        }
        self.picked = None;
    }

    /// The value of a parameter, by its keyword in [`super::Params`] or an alias of that, of the first sampler that has
    /// it.
    pub fn parameter(&self, name: &str) -> Option<f64> {
        let keyword = registry::keyword(name);
        let rows = self.rows.iter().zip(&self.samplers);
        rows.filter_map(|(row, s)| row.as_ref()?.parameter(s.as_ref(), keyword)).next()
    }

    /// Number of tokens accepted, less those rolled back.
    pub fn accepted(&self) -> usize {
        self.accepted
    }

    /// The samplers' names, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.samplers.iter().map(|s| s.name()).collect()
    }

    /// The samplers with their parameters, `->` between them.
    pub fn describe(&self) -> String {
        let each: Vec<String> = self.samplers.iter().map(|s| s.describe()).collect();
        each.join(" -> ")
    }

    /// The samplers, in order.
    pub fn samplers(&self) -> &[Box<dyn Sampler>] {
        &self.samplers
    }

    /// The seed of the sampler that draws, if one does.
    pub fn seed(&self) -> Option<Seed> {
        self.samplers.iter().find_map(|s| s.seed())
    }
}

/// An error if a sampler left a candidate that is not allowed, or has no logit among the `n`.
fn unlisted(
    name: &str,
    mut ids: impl Iterator<Item = TokenId>,
    allowed: AllowedTokens<'_>,
    n: usize,
) -> Option<Error> {
    let id = ids.find(|&id| id as usize >= n || !allowed.contains(id))?;
    Some(
        Error::new(ErrorKind::Mask, format!("{name} wants token {id}, which is not allowed"))
            .help("allow that token where the text may end, or leave the sampler out"),
    )
}
