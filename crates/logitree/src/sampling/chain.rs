//! The chain: samplers in order, one candidate picked, and the state that goes with accepted tokens.
//!
//! It refuses to know any sampler's rule, and does nothing that a caller could not do with the samplers one by one.

use super::{Candidates, Sampler};
use crate::mask::Legal;
use crate::{kernel, Error, ErrorKind, Result, TokenId};

/// Samplers in order. Cloning gives an independent chain in the same state.
///
/// Law: after n tokens were accepted, `rollback(n)` leaves it as though their steps had never been, draws included.
#[derive(Debug, Clone)]
pub struct Chain {
    samplers: Vec<Box<dyn Sampler>>,
    candidates: Candidates<'static>,
    picked: Option<TokenId>,
    accepted: usize,
    ledger: Ledger,
}

/// What one sampler did in one step. A candidate counts while its logit is above -inf.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The sampler's name.
    pub sampler: &'static str,
    /// Candidates before it.
    pub before: usize,
    /// Candidates after it.
    pub after: usize,
    /// Logits it changed, of those that stayed.
    pub changed: usize,
    /// Probability, before it and at the logits as they stood, of what it cut: 0 to 1.
    pub mass_cut: f64,
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

    /// The chain of samplers that are known to stand right.
    pub(super) fn of(samplers: Vec<Box<dyn Sampler>>) -> Chain {
        let (candidates, ledger) = (Candidates::default(), Ledger::default());
        Chain { samplers, candidates, picked: None, accepted: 0, ledger }
    }

    /// Applies the chain and picks: the next token. Nothing is accepted.
    ///
    /// # Errors
    /// Those of [`Chain::apply`] and [`Chain::pick`].
    pub fn sample(&mut self, logits: &[f32], legal: Legal<'_>) -> Result<TokenId> {
        self.check_selects()?;
        self.run(logits, legal, None, false)?;
        self.pick()
    }

    /// Applies the chain, so that [`Chain::candidates`] lists what survived with probabilities that sum to one.
    /// A drawing sampler draws. `effects` is cleared and told what each sampler did, which costs time.
    ///
    /// # Errors
    /// [`ErrorKind::Logits`] for NaN or +inf among the legal logits, and if nothing is left to choose from;
    /// [`ErrorKind::Mask`] for a legal id without a logit. Nothing is drawn then.
    pub fn apply(
        &mut self,
        logits: &[f32],
        legal: Legal<'_>,
        effects: Option<&mut Vec<Effect>>,
    ) -> Result<()> {
        self.run(logits, legal, effects, true)
    }

    fn run(
        &mut self,
        logits: &[f32],
        legal: Legal<'_>,
        mut effects: Option<&mut Vec<Effect>>,
        list: bool,
    ) -> Result<()> {
        self.picked = None;
        let mut c = Candidates::begin(std::mem::take(&mut self.candidates), logits, legal)?;
        if let Some(effects) = effects.as_deref_mut() {
            effects.clear();
            self.ledger.open(&c);
        }
        for sampler in &mut self.samplers {
            let skip = sampler.is_noop();
            if !skip {
                sampler.apply(&mut c);
                if let Some(fault) = c.take_fault() {
                    return Err(fault);
                }
            }
            if let Some(effects) = effects.as_deref_mut() {
                let still = skip || sampler.selects();
                effects.push(self.ledger.effect(sampler.name(), if still { None } else { Some(&c) }));
            }
        }
        self.picked = c.selected().and_then(|at| c.id_at(at));
        if list {
            c.list();
            c.normalise();
        }
        self.candidates = c.end();
        Ok(())
    }

    /// What survived the last [`Chain::apply`]: ids, logits and probabilities, in order. After
    /// [`Chain::sample`] it may be empty, for what need not be listed is not.
    pub fn candidates(&self) -> &Candidates<'static> {
        &self.candidates
    }

    /// The token that the last [`Chain::apply`] selected. Asking again gives it again.
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

    /// Takes note of an accepted token, picked here or from outside (a prompt's, too).
    pub fn accept(&mut self, token: TokenId) {
        for sampler in &mut self.samplers {
            sampler.accept(token);
        }
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
            self.accepted -= n;
            self.picked = None;
        }
        Ok(())
    }

    /// Advances as [`Chain::sample`] would with one sole candidate, so that a forced token can be taken without
    /// logits and the tokens after it stay the same. Accept it afterwards.
    pub fn forced(&mut self) {
        for sampler in &mut self.samplers {
            sampler.forced();
        }
    }

    /// Back to the state it was born with: same seed, nothing accepted.
    pub fn reset(&mut self) {
        for sampler in &mut self.samplers {
            sampler.reset();
        }
        self.accepted = 0;
        self.picked = None;
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
    pub fn seed(&self) -> Option<u32> {
        self.samplers.iter().find_map(|s| s.seed())
    }
}

/// The candidates above -inf before a sampler, by ascending id, to tell what it did.
#[derive(Debug, Clone, Default)]
struct Ledger {
    before: Vec<(TokenId, f32)>,
    after: Vec<(TokenId, f32)>,
    scratch: Vec<f32>,
    /// Highest logit before, and the sum of exp(logit - highest).
    max: f32,
    sum: f64,
}

impl Ledger {
    fn open(&mut self, c: &Candidates<'_>) {
        self.before.clear();
        c.for_each(|id, x| {
            if x > f32::NEG_INFINITY {
                self.before.push((id, x));
            }
        });
        self.weigh();
    }

    fn weigh(&mut self) {
        self.before.sort_unstable_by_key(|b| b.0);
        self.scratch.clear();
        self.scratch.extend(self.before.iter().map(|b| b.1));
        self.max = kernel::max(&self.scratch);
        self.sum = kernel::sum_exp(&self.scratch, self.max);
    }

    /// The effect of a sampler that left the candidates as `c` (`None`: untouched).
    fn effect(&mut self, sampler: &'static str, c: Option<&Candidates<'_>>) -> Effect {
        let before = self.before.len();
        let Some(c) = c else {
            return Effect { sampler, before, after: before, changed: 0, mass_cut: 0.0 };
        };
        self.after.clear();
        self.scratch.clear();
        let (mut changed, mut next) = (0, 0);
        c.for_each(|id, x| {
            if x == f32::NEG_INFINITY {
                return;
            }
            self.after.push((id, x));
            // Candidates mostly come in the order they had.
            let at = if self.before.get(next).is_some_and(|b| b.0 == id) {
                Ok(next)
            } else {
                self.before.binary_search_by_key(&id, |b| b.0)
            };
            if let Ok(at) = at {
                next = at + 1;
                changed += usize::from(self.before[at].1 != x);
                self.scratch.push(self.before[at].1);
            }
        });
        let after = self.after.len();
        let mass_cut = if after == before {
            0.0
        } else {
            (1.0 - kernel::sum_exp(&self.scratch, self.max) / self.sum).clamp(0.0, 1.0)
        };
        std::mem::swap(&mut self.before, &mut self.after);
        self.weigh();
        Effect { sampler, before, after, changed, mass_cut }
    }
}
