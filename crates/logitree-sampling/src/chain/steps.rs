//! A chain as numbers, for a program that runs it where the logits are: a kernel on a GPU.

use super::{Chain, Mode};
use crate::{Error, ErrorKind, Result};

/// Words of a row of [`step_words`] before its steps.
const HEADER: usize = 8;

/// What a sampler does, as far as kernels know it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Divides the logits; at or below 0 only the first maximum stays.
    Temperature(f32),
    /// Keeps the k best.
    TopK(u32),
    /// Keeps the fewest best candidates that hold this share of the weight, and at least one.
    TopP(f32),
    /// Keeps logits of at least the best one plus this, which is not above 0, and at least one.
    MinP(f32),
    /// Selects the first maximum.
    Greedy,
    /// Draws with Philox4x32-10: the word pair at the counter's first two words, as the generator `philox` does.
    Draw {
        /// Key.
        key: u64,
        /// Sequence of the key.
        sequence: u32,
        /// Accepted tokens.
        position: u64,
    },
}

impl Chain {
    /// What its samplers do to the next logits, without those that change nothing. The last step selects.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if a sampler is none of [`Step`], if it draws from another generator, and for a chain
    /// that is steered, measured, in parity mode or has a rule; the place is the sampler.
    pub fn steps(&self) -> Result<Vec<Step>> {
        self.check_selects()?;
        let problem = if self.align.is_set() {
            Some("the chain is steered, or has a rule")
        } else if self.measuring || self.listing.is_some() {
            Some("the chain is measured")
        } else if self.mode == Mode::Parity {
            Some("the chain is in parity mode")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(unknown(problem));
        }
        let count = self.samplers.len();
        let working = self.samplers.iter().zip(1..).filter(|(sampler, _)| !sampler.is_noop());
        let steps = working.map(|(sampler, at)| {
            sampler.step().ok_or_else(|| {
                let place = format!("sampler {at} of {count}");
                unknown(&format!("{} has no form as numbers", sampler.describe())).at(place)
            })
        });
        steps.collect()
    }
}

/// The steps of chains as rows of equally many words, and how many words a row has:
///
/// | word | |
/// |---|---|
/// | 0 | number of steps before the one that selects |
/// | 1 | 1: it draws; 0: it selects the first maximum |
/// | 2, 3 | key of the draw, low word first |
/// | 4 | its sequence |
/// | 5, 6 | its position, low word first |
/// | 7 | 0: what stays is in order of the tokens; else descending, and the smallest k of a top_k, or `u32::MAX` |
/// | 8 + 2i, 9 + 2i | step i: 0 temperature, 1 top_k, 2 top_p, 3 min_p; and its number, a float's bits except of top_k |
///
/// # Errors
/// Those of [`Chain::steps`], for the first row that has one, with the row in its place.
pub fn step_words(chains: &[&Chain]) -> Result<(Vec<u32>, usize)> {
    let each = chains
        .iter()
        .zip(0..)
        .map(|(chain, row)| chain.steps().map_err(|error| error.within(&format!("row {row}"))));
    let each = each.collect::<Result<Vec<_>>>()?;
    let longest = each.iter().map(Vec::len).max().unwrap_or(1);
    let width = HEADER + 2 * (longest - 1);
    let mut words = vec![0; width * chains.len()];
    each.iter().zip(words.chunks_mut(width)).for_each(|(steps, row)| write(steps, row));
    Ok((words, width))
}

fn write(steps: &[Step], row: &mut [u32]) {
    row[0] = steps.len() as u32 - 1;
    for (step, at) in steps.iter().zip((HEADER..).step_by(2)) {
        let (kind, number) = match *step {
            Step::Temperature(t) => (0, t.to_bits()),
            Step::TopK(k) => {
                row[7] = if row[7] == 0 { k } else { k.min(row[7]) };
                (1, k)
            }
            Step::TopP(p) => {
                row[7] = if row[7] == 0 { u32::MAX } else { row[7] };
                (2, p.to_bits())
            }
            Step::MinP(least) => (3, least.to_bits()),
            Step::Greedy => return,
            Step::Draw { key, sequence, position } => {
                let words =
                    [key as u32, (key >> 32) as u32, sequence, position as u32, (position >> 32) as u32];
                row[1] = 1;
                return row[2..7].copy_from_slice(&words);
            }
        };
        (row[at], row[at + 1]) = (kind, number);
    }
}

fn unknown(problem: &str) -> Error {
    Error::new(ErrorKind::Sampling, problem).help(
        "kernels know temp, top_k, top_p, min_p (with min_keep up to 1), greedy, and dist with rng=\"philox\"; \
         sample other chains from logits in this machine's memory",
    )
}
