//! Bursts: where the model is unsure, other parameters apply for a number of tokens, then the chain's own again.

use super::{checked_settings, show, wrong, Adapt, Distribution, Setting};
use crate::{Error, ErrorKind, Result};
use crate::{StateReader, StateWriter};

/// The condition that starts a burst, its length and its settings.
///
/// A burst begins with the step at which the model is unsure and lasts for its number of accepted tokens. The
/// distribution is not checked during it; the next burst may start with the token after it.
#[derive(Debug, Clone)]
pub struct Burst {
    top_p_below: f64,
    entropy_above: f64,
    tokens: usize,
    settings: Vec<Setting>,
    accepted: usize,
    /// Accepted tokens before the first of each burst, ascending, `tokens` or more apart.
    begun: Vec<usize>,
    /// Whether the current step starts one.
    unsure: bool,
}

impl Burst {
    /// The `settings` apply for `tokens` tokens once the most likely token's probability is below `top_p_below` (0:
    /// never) or the entropy in nats is above `entropy_above` (+inf: never).
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a burst that nothing starts or of no tokens, a probability outside 0 to 1, an
    /// entropy below 0, and values that are not finite.
    pub fn new(top_p_below: f64, entropy_above: f64, tokens: usize, settings: Vec<Setting>) -> Result<Self> {
        if !(0.0..=1.0).contains(&top_p_below) {
            let message = format!("a burst below a probability of {top_p_below}");
            return Err(wrong(message, "top_p_below is a number from 0 to 1"));
        }
        if entropy_above.is_nan() || entropy_above < 0.0 {
            let message = format!("a burst above an entropy of {entropy_above}");
            return Err(wrong(message, "entropy_above is a number of nats, 0 or more"));
        }
        if top_p_below == 0.0 && entropy_above == f64::INFINITY {
            return Err(wrong(
                "nothing sets the burst off".into(),
                "give top_p_below, entropy_above or both",
            ));
        }
        if tokens == 0 {
            return Err(wrong("a burst of 0 tokens".into(), "let it last 1 token or more"));
        }
        let (settings, begun) = (checked_settings(settings)?, Vec::new());
        Ok(Burst { top_p_below, entropy_above, tokens, settings, accepted: 0, begun, unsure: false })
    }

    /// A burst begins where the most likely token's probability is below this; 0: never.
    pub fn top_p_below(&self) -> f64 {
        self.top_p_below
    }

    /// A burst begins where the entropy in nats is above this; +inf: never.
    pub fn entropy_above(&self) -> f64 {
        self.entropy_above
    }

    /// How many tokens a burst lasts.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The parameters of a burst.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Whether the next token belongs to a burst that has begun.
    pub fn is_on(&self) -> bool {
        self.begun.last().is_some_and(|begun| self.accepted - begun < self.tokens)
    }
}

impl Adapt for Burst {
    fn describe(&self) -> String {
        let mut each = Vec::new();
        if self.top_p_below > 0.0 {
            each.push(format!("top_p_below={}", self.top_p_below));
        }
        if self.entropy_above < f64::INFINITY {
            each.push(format!("entropy_above={}", self.entropy_above));
        }
        format!("Burst({}, {}, tokens={})", show(&self.settings), each.join(", "), self.tokens)
    }

    fn settings(&mut self, seen: Distribution) -> Result<&[Setting]> {
        self.unsure = seen.top_p < self.top_p_below || seen.entropy > self.entropy_above;
        Ok(if self.unsure || self.is_on() { &self.settings } else { &[] })
    }

    fn declared(&self) -> Vec<&[Setting]> {
        vec![&self.settings]
    }

    fn forced(&mut self) {
        self.unsure = false;
    }

    fn accept(&mut self) {
        if self.unsure && !self.is_on() {
            self.begun.push(self.accepted);
        }
        self.unsure = false;
        self.accepted += 1;
    }

    fn rollback(&mut self, n: usize) {
        // A rule that was set after the chain accepted tokens saw fewer of them than the chain.
        self.accepted = self.accepted.saturating_sub(n);
        self.begun.truncate(self.begun.partition_point(|&begun| begun < self.accepted));
        self.unsure = false;
    }

    fn reset(&mut self) {
        self.rollback(self.accepted);
    }

    fn clone_box(&self) -> Box<dyn Adapt> {
        Box::new(self.clone())
    }

    fn save(&self, state: &mut StateWriter) {
        state.word(self.accepted as u64);
        state.word(self.begun.len() as u64);
        self.begun.iter().for_each(|&begun| state.word(begun as u64));
    }

    fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        let accepted = state.count()?;
        let n = state.length(1)?;
        let begun: Vec<u64> = (0..n).map(|_| state.word()).collect::<Result<_>>()?;
        let apart = begun.windows(2).all(|w| w[1].checked_sub(w[0]).is_some_and(|d| d >= self.tokens as u64));
        if !apart || begun.last().is_some_and(|&last| last >= accepted) {
            return Err(Error::new(ErrorKind::State, "the snapshot's bursts do not add up"));
        }
        self.accepted = accepted as usize;
        self.begun = begun.iter().map(|&b| b as usize).collect();
        self.unsure = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The naive version: which of the tokens with these top probabilities belong to bursts of 3 below 0.2.
    fn naive(tops: &[f64]) -> Vec<bool> {
        let mut left = 0;
        tops.iter()
            .map(|&top| {
                if left == 0 && top < 0.2 {
                    left = 3;
                }
                let on = left > 0;
                left -= usize::from(on);
                on
            })
            .collect()
    }

    fn on(burst: &mut Burst, top_p: f64) -> bool {
        !burst.settings(Distribution { entropy: 1.0, top_p }).unwrap().is_empty()
    }

    #[test]
    fn bursts_last_their_tokens_and_roll_back() {
        let tops: Vec<f64> = (0..60).map(|i| f64::from(i * 7919 % 100) / 100.0).collect();
        let expected = naive(&tops);
        assert!(expected.iter().any(|&on| on) && expected.iter().any(|&on| !on));
        let mut burst = Burst::new(0.2, f64::INFINITY, 3, vec![("temp".into(), 2.0)]).unwrap();
        let mut at = 0;
        for turn in 0..400 {
            if turn % 5 == 4 {
                let n = (turn * 31 % 9).min(at);
                burst.rollback(n);
                at -= n;
            }
            if at == tops.len() {
                burst.reset();
                at = 0;
            }
            // An earlier call for the same step, with other logits.
            on(&mut burst, 0.0);
            assert_eq!(on(&mut burst, tops[at]), expected[at], "token {at}");
            let mut words = StateWriter::default();
            burst.accept();
            burst.save(&mut words);
            let mut other = Burst::new(0.2, f64::INFINITY, 3, vec![("temp".into(), 2.0)]).unwrap();
            other.load(&mut StateReader::new(words.words())).unwrap();
            assert_eq!(
                (other.is_on(), other.accepted, &other.begun),
                (burst.is_on(), burst.accepted, &burst.begun)
            );
            at += 1;
        }
    }

    #[test]
    fn invalid_parameters_are_refused() {
        let new = |top, entropy, n| Burst::new(top, entropy, n, vec![("temp".into(), 2.0)]);
        for (top, entropy, n) in [
            (f64::NAN, 1.0, 1),
            (-0.1, 1.0, 1),
            (1.1, 1.0, 1),
            (0.1, f64::NAN, 1),
            (0.1, -1.0, 1),
            (0.0, f64::INFINITY, 1),
            (0.1, 1.0, 0),
        ] {
            assert_eq!(new(top, entropy, n).unwrap_err().kind, ErrorKind::Sampling, "{top} {entropy} {n}");
        }
        let mut burst = new(0.5, 1.0, 2).unwrap();
        for words in [&[][..], &[3, 1], &[3, 1, 3], &[9, 2, 4, 5], &[9, 2, 5, 4], &[9, 1 << 60]] {
            assert!(burst.load(&mut StateReader::new(words)).is_err(), "{words:?}");
        }
        burst.load(&mut StateReader::new(&[9, 2, 4, 8])).unwrap();
        assert!(burst.is_on());
    }
}
