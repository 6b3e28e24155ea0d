//! Samples a batch: one chain for each row of logits, in parallel where there is enough work.
//!
//! The slow version is a loop of [`Chain::draw`]. A row's result depends only on its logits, its allowed tokens and
//! its chain, not on the number of rows, their order or the number of threads.

use super::{Chain, Floats};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::AllowedTokens;
use logitree_tokens::threads;

/// One sequence's next step.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The model's logits.
    pub logits: Floats<'a>,
    /// What may be picked.
    pub allowed: AllowedTokens<'a>,
}

impl Row<'_> {
    /// About how many logits the chain reads.
    fn reads(&self) -> usize {
        match self.allowed {
            AllowedTokens::All => self.logits.len(),
            AllowedTokens::Ids(ids) => ids.len(),
            AllowedTokens::Mask(words) => self.logits.len().min(words.len() * 32),
        }
    }
}

/// A row's token and its log-probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Picked {
    /// The token.
    pub token: TokenId,
    /// Its log-probability before the chain, under all of the row's logits, in nats; NaN if it was not asked for.
    pub before: f64,
    /// Its log-probability after the chain, among the candidates that were left, in nats; NaN if not asked for.
    pub after: f64,
}

/// How a batch is sampled.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchOptions {
    /// Most threads, the caller's included; 0: as many as there are cores.
    pub threads: usize,
    /// Whether each chain accepts its token.
    pub accept: bool,
    /// Whether log-probabilities are wanted: each step is measured then.
    pub log_probabilities: bool,
}

/// Samples every row with its chain (as many chains as rows).
///
/// # Errors
/// [`ErrorKind::Sampling`] if there are not as many chains as rows; nothing is sampled then. Otherwise the error of
/// [`Chain::draw`] for the first row that has one, with the row in its place (`row 3`): all rows were sampled, the
/// chain of each good row has its token ([`Chain::pick`]), and no chain has accepted one.
pub fn sample(rows: &[Row<'_>], chains: &mut [&mut Chain], options: BatchOptions) -> Result<Vec<Picked>> {
    if rows.len() != chains.len() {
        let message = format!("{} chains for {} rows", chains.len(), rows.len());
        return Err(Error::new(ErrorKind::Sampling, message).help("give one chain for each row"));
    }
    let cost = rows.iter().map(|row| threads::cost_of_logits(row.reads())).fold(0, u64::saturating_add);
    let work = |(row, chain): (&Row<'_>, &mut &mut Chain)| one(row, chain, options);
    let picked = threads::all(threads::map(rows.iter().zip(chains.iter_mut()), options.threads, cost, work))?;
    if options.accept {
        chains.iter_mut().zip(&picked).for_each(|(chain, picked)| chain.accept(picked.token));
    }
    Ok(picked)
}

fn one(row: &Row<'_>, chain: &mut Chain, options: BatchOptions) -> Result<Picked> {
    let measuring = chain.is_measuring();
    if options.log_probabilities && !measuring {
        chain.measure(true);
    }
    let token = chain.draw(row.logits, row.allowed);
    let measures = chain.measures().filter(|_| options.log_probabilities);
    if options.log_probabilities && !measuring {
        chain.measure(false);
    }
    Ok(Picked {
        token: token?,
        before: measures.map_or(f64::NAN, |m| m.model.log_probability),
        after: measures.map_or(f64::NAN, |m| m.sampling.log_probability),
    })
}

impl Chain {
    /// `n` chains of the same samplers that start over as sequences `0..n` of the seed: one for each row of a
    /// batch. With philox their draws depend on seed, sequence and position alone.
    pub fn sequences(&self, n: usize) -> Vec<Chain> {
        (0..n).map(|at| self.sequence(at)).collect()
    }

    /// The chain of [`Chain::sequences`] with this number.
    pub fn sequence(&self, at: usize) -> Chain {
        let mut chain = self.clone();
        chain.resequence(u32::try_from(at).unwrap_or(u32::MAX));
        chain
    }

    /// Whether a sampler or the rule calls code of the host program, which must stay on the caller's thread.
    pub fn is_foreign(&self) -> bool {
        self.samplers().iter().any(|s| s.is_foreign()) || self.rule().is_some_and(|rule| rule.is_foreign())
    }
}
