//! The best continuations of beams under masks: a row of logits and an accumulated log-probability each.
//!
//! The naive version scores every allowed token of every beam, sorts, and takes the first. The optimisation: a block of
//! 256 logits is skipped if its maximum cannot be among the best.

use super::best::BestCandidates;
use super::BeamCandidate;
use crate::mask::{words_for, AllowedTokens};
use crate::sampling::Row;
use crate::sampling::{bad_logit, no_logit};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::simd::{self, Floats, BLOCK};

/// A continuation of one beam: `score` is the beam's and the token's log-probability under all of the row's logits,
/// in nats, and finite.
pub type Beam = BeamCandidate<()>;

/// The best `width` continuations: by descending score, then row, then token. Fewer if there are fewer allowed ones
/// with a logit above -inf. A beam with a score of -inf is not looked at; one without an allowed token has no
/// continuation, which is no error.
///
/// # Errors
/// [`ErrorKind::Logits`] for NaN or +inf anywhere in a row, or as a score; [`ErrorKind::Mask`] for an allowed id
/// without a logit; [`ErrorKind::Sampling`] if there are not as many scores as rows. Places name the row.
pub fn beam_top(rows: &[Row<'_>], scores: &[f64], width: usize) -> Result<Vec<Beam>> {
    if rows.len() != scores.len() {
        let message = format!("{} scores for {} rows", scores.len(), rows.len());
        return Err(Error::new(ErrorKind::Sampling, message).help("give one score for each row"));
    }
    let (mut best, mut found) = (BestCandidates::new(width), Vec::new());
    let mut maxima = Vec::new();
    for ((row, &score), at) in rows.iter().zip(scores).zip(0..) {
        if score == f64::NEG_INFINITY {
            continue;
        }
        let place = |error: Error| error.within(&format!("row {at}"));
        if !score.is_finite() {
            return Err(place(
                Error::new(ErrorKind::Logits, format!("the beam's score is {score}"))
                    .help("a score is a finite log-probability, or -inf for a beam that is over"),
            ));
        }
        maxima.resize(row.logits.len().div_ceil(BLOCK), 0.0);
        if !simd::block_maxima(row.logits, &mut maxima) {
            let all = (0..row.logits.len()).filter_map(|id| Some((row.logits.get(id)?, id as TokenId)));
            return Err(place(bad_logit(all)));
        }
        let log_sum = simd::log_sum_exp(row.logits);
        let line = Line { row: at, logits: row.logits, maxima: &maxima, score, log_sum };
        if log_sum.is_finite() {
            line.offer(row.allowed, &mut best).map_err(place)?;
        }
    }
    best.finish(&mut found);
    Ok(found)
}

/// One row while it is looked through.
struct Line<'a> {
    row: u32,
    logits: Floats<'a>,
    maxima: &'a [f32],
    score: f64,
    log_sum: f64,
}

impl Line<'_> {
    /// The score of a continuation by a logit. Never falls as the logit rises, so that a maximum bounds the rest.
    fn score(&self, logit: f32) -> f64 {
        // + 0.0 makes -0.0 equal to 0.0.
        self.score + (f64::from(logit) - self.log_sum).min(0.0) + 0.0
    }

    fn beam(&self, token: TokenId, logit: f32) -> Beam {
        Beam { row: self.row, token, score: self.score(logit), state: () }
    }

    /// Offers every allowed continuation that may be one of the best.
    fn offer(&self, allowed: AllowedTokens<'_>, best: &mut BestCandidates<()>) -> Result<()> {
        let n = self.logits.len();
        if let AllowedTokens::Ids(ids) = allowed {
            for &id in ids {
                let logit = self.logits.get(id as usize).ok_or_else(|| no_logit(id, n))?;
                best.take(self.beam(id, logit));
            }
            return Ok(());
        }
        if let AllowedTokens::Mask(words) = allowed {
            let covering = words_for(n);
            if let Some((at, word)) = words.iter().enumerate().skip(covering).find(|(_, &word)| word != 0) {
                return Err(no_logit((at * 32) as TokenId + word.trailing_zeros(), n));
            }
        }
        let mut buffer = [0.0; BLOCK];
        for (block, &max) in self.maxima.iter().enumerate() {
            if !best.wants(self.score(max)) {
                continue;
            }
            for (&logit, id) in self.logits.block(block, &mut buffer).iter().zip((block * BLOCK) as TokenId..)
            {
                if best.wants(self.score(logit)) && allowed.contains(id) {
                    best.take(self.beam(id, logit));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every continuation, sorted.
    fn slow(rows: &[Row<'_>], scores: &[f64], width: usize) -> Vec<Beam> {
        let mut all = Vec::new();
        for ((row, &score), at) in rows.iter().zip(scores).zip(0..) {
            let log_sum = simd::log_sum_exp(row.logits);
            for id in 0..row.logits.len() {
                let logit = row.logits.get(id).unwrap();
                let live = logit > f32::NEG_INFINITY && score > f64::NEG_INFINITY;
                if live && row.allowed.contains(id as TokenId) {
                    let score = score + (f64::from(logit) - log_sum).min(0.0);
                    all.push(Beam { row: at, token: id as TokenId, score, state: () });
                }
            }
        }
        all.sort();
        all.truncate(width);
        all
    }

    proptest! {
        #[test]
        fn equal_to_scoring_everything(
            // Few values, so that many are equal.
            values in prop::collection::vec(prop_oneof![9 => -6i8..6, 1 => Just(i8::MIN)], 1..2400),
            scores in prop::collection::vec(prop_oneof![5 => -9i8..0, 1 => Just(i8::MIN)], 1..7),
            width in 0usize..40,
            few in prop::collection::btree_set(0u32..300, 0..30),
            words in prop::collection::vec(any::<u32>(), 0..20),
        ) {
            let float = |v: i8| if v == i8::MIN { f32::NEG_INFINITY } else { f32::from(v) / 2.0 };
            let values: Vec<f32> = values.into_iter().map(float).collect();
            let scores: Vec<f64> = scores.into_iter().map(|s| f64::from(float(s))).collect();
            let few: Vec<TokenId> = few.into_iter().collect();
            let rows: Vec<Row> = scores.iter().zip(0..).map(|(_, at)| {
                let logits = &values[at * 11 % values.len()..];
                let few = &few[..few.partition_point(|&id| (id as usize) < logits.len())];
                let words = &words[..words.len().min(logits.len().div_ceil(32))];
                let allowed = [AllowedTokens::All, AllowedTokens::Ids(few), AllowedTokens::Mask(words)][at % 3];
                Row { logits: Floats::F32(logits), allowed }
            }).collect();
            prop_assert_eq!(beam_top(&rows, &scores, width).unwrap(), slow(&rows, &scores, width));
        }
    }

    #[test]
    fn wrong_rows_are_named() {
        let good = Row { logits: Floats::F32(&[1.0, 2.0]), allowed: AllowedTokens::All };
        let bad = Row { logits: Floats::F32(&[1.0, f32::NAN]), allowed: AllowedTokens::All };
        let error = |rows: &[Row], scores: &[f64]| beam_top(rows, scores, 2).unwrap_err();
        assert_eq!(error(&[good, bad], &[0.0, 0.0]).place, "row 1, id 1");
        assert_eq!(error(&[good, good], &[0.0, f64::NAN]).place, "row 1");
        assert_eq!(error(&[good], &[]).kind, ErrorKind::Sampling);
        let far = Row { allowed: AllowedTokens::Ids(&[5]), ..good };
        assert_eq!(error(&[far], &[0.0]).kind, ErrorKind::Mask);
        assert_eq!(
            error(&[Row { allowed: AllowedTokens::Mask(&[1, 1]), ..good }], &[0.0]).kind,
            ErrorKind::Mask
        );
        // What is not looked at is not wrong.
        assert_eq!(beam_top(&[bad], &[f64::NEG_INFINITY], 2).unwrap(), []);
        assert_eq!(beam_top(&[Row { allowed: AllowedTokens::Ids(&[]), ..good }], &[0.0], 2).unwrap(), []);
        assert_eq!(beam_top(&[], &[], 2).unwrap(), []);
    }
}
