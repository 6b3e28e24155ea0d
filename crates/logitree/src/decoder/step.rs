//! One step from logits to a token: what is allowed, the chain's pick, and with a trace what it saw.

use std::time::{Duration, Instant};

use super::record::{alternatives, chain_view, few, likelihoods, mass, micros, model_view};
use super::region::Regions;
use super::Decoder;
use crate::mask::AllowedTokens;
use crate::sampling::{Chain, Floats};
use crate::trace::{Source, Step, ALTERNATIVES_KEPT};
use crate::{metrics, Result, TokenId};

impl Decoder {
    pub(super) fn plain_step(&mut self, logits: Floats<'_>) -> Result<TokenId> {
        let bias = self.regions.bias()?;
        let is_known = self.is_ready();
        let (active, temperature) = (self.regions.active_span(), self.regions.temperature());
        let chain = self.span_chains.pick(active, &mut self.chain);
        chain.list_likeliest(self.listing);
        chain.temper_next(temperature);
        let masking = (!is_known).then(Instant::now);
        let decided = match bias {
            None if self.listing.is_none() => greatest(chain, &mut self.regions, logits)?,
            _ => None,
        };
        let allowed = match decided {
            Some(_) => AllowedTokens::All,
            None => self.regions.allowed()?,
        };
        self.mask_time += masking.map_or(Duration::ZERO, |began| began.elapsed());
        let token = match (decided, allowed) {
            (Some(token), _) => token,
            (None, AllowedTokens::Ids(&[only])) => {
                chain.sole(only)?;
                only
            }
            (None, allowed) => {
                chain.bias_next(bias)?;
                chain.draw(logits, allowed)?
            }
        };
        let likelihoods = self.listing.map(|n| likelihoods(logits, chain, token, n));
        self.span_chains.pass(active, &mut self.chain);
        self.take(token)?;
        self.likelihoods = likelihoods;
        Ok(token)
    }

    pub(super) fn traced_step(&mut self, logits: Floats<'_>, started: Instant) -> Result<TokenId> {
        let mut effects = Vec::new();
        let bias = self.regions.bias()?;
        let is_known = self.is_ready();
        let (active, temperature) = (self.regions.active_span(), self.regions.temperature());
        let chain = self.span_chains.pick(active, &mut self.chain);
        chain.list_likeliest(self.listing);
        chain.temper_next(temperature);
        let allowed = self.regions.allowed()?;
        let mask_micros = micros(started);
        if !is_known {
            self.mask_time += started.elapsed();
        }
        let count = allowed.count(self.vocabulary.len());
        let allowed_tokens = few(allowed);
        let mass_allowed = mass(logits, allowed);
        let watched: Vec<TokenId> =
            metrics::top_candidates(logits, ALTERNATIVES_KEPT).iter().map(|top| top.id).collect();
        let banned: Vec<TokenId> = watched.iter().copied().filter(|&id| !allowed.contains(id)).collect();
        let sampling = Instant::now();
        let (token, source) = match allowed {
            AllowedTokens::Ids(&[only]) => {
                chain.sole(only)?;
                (only, Source::Forced)
            }
            allowed => {
                chain.bias_next(bias)?;
                chain.apply_watching(logits, allowed, &watched, &mut effects)?;
                (chain.pick()?, Source::Sampled)
            }
        };
        let likelihoods = self.listing.map(|n| likelihoods(logits, chain, token, n));
        self.span_chains.pass(active, &mut self.chain);
        self.take(token)?;
        self.likelihoods = likelihoods;
        let micros = mask_micros + micros(sampling);
        let chain = self.span_chains.pick(active, &mut self.chain);
        let left = (source == Source::Sampled).then(|| chain.candidates());
        let (probability, candidates) = left.map_or((None, Vec::new()), |left| chain_view(left, token));
        let mut tokens = watched;
        tokens.extend(candidates.iter().map(|&(id, _)| id));
        tokens.push(token);
        let alternatives = alternatives(logits, tokens, &banned, &effects, left);
        let model = model_view(logits, token);
        self.record(Step {
            model,
            probability,
            candidates,
            alternatives,
            temperature: temperature.filter(|_| source == Source::Sampled),
            effects,
            mass_allowed,
            mask_micros,
            micros,
            ..Step::plain(token, source, count, allowed_tokens, started)
        });
        Ok(token)
    }
}

/// The token that a chain picks which takes the greatest logit, where deciding that one token is faster than finding all
/// that are allowed: the greatest of more tokens, if it is allowed, is the greatest of the allowed ones. `None`: they are to
/// be found, and the chain is as before.
fn greatest(chain: &mut Chain, regions: &mut Regions, logits: Floats<'_>) -> Result<Option<TokenId>> {
    if !chain.takes_greatest() {
        return Ok(None);
    }
    let picked = match regions.allowed_superset()? {
        None | Some(AllowedTokens::Ids(&[_])) => return Ok(None),
        // Logits that are no numbers may be those of tokens that are not allowed.
        Some(superset) => chain.draw(logits, superset).ok(),
    };
    if let Some(token) = picked {
        if regions.is_allowed(token)? {
            return Ok(Some(token));
        }
    }
    chain.rewind();
    Ok(None)
}
