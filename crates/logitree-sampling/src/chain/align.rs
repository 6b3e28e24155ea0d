//! What an application adds to a chain: steering before the first sampler, and a rule that picks parameters for one
//! step.

use std::sync::{Arc, LazyLock};

use super::Chain;
use crate::adapt::{self, Adapt, Distribution, Setting};
use crate::registry::SamplerRow;
use crate::{Candidates, Sampler, Steering};
use crate::{Error, ErrorKind, Result, TokenId};

/// Steering, the rule, and the values that its settings replace during a step.
#[derive(Debug, Clone, Default)]
pub(super) struct Align {
    pub steering: Steering,
    /// What is added for the coming step alone, after the steering.
    pub bias: Steering,
    pub rule: Option<Box<dyn Adapt>>,
    /// The temperature of the coming step alone, instead of the samplers' and the rule's.
    pub temperature: Option<f32>,
    former: Former,
}

/// Values to be put back: place of the sampler, parameter, value.
type Former = Vec<(usize, Arc<str>, f64)>;

impl Align {
    /// Makes the edits of the steering and the bias and returns whether there were any. The bias is used up.
    pub fn steer(&mut self, candidates: &mut Candidates<'_>) -> Result<bool> {
        let bias = std::mem::take(&mut self.bias);
        for edits in [&self.steering, &bias].into_iter().filter(|edits| !edits.is_empty()) {
            edits.apply(candidates)?;
        }
        Ok(!self.steering.is_empty() || !bias.is_empty())
    }

    /// Whether there is a steering, a bias, or something that changes parameters.
    pub fn is_set(&self) -> bool {
        !self.steering.is_empty() || !self.bias.is_empty() || self.changes_parameters()
    }

    /// Whether there is a rule, or a temperature.
    pub fn changes_parameters(&self) -> bool {
        self.rule.is_some() || self.temperature.is_some()
    }

    /// Before the first sampler: calls the rule, makes its settings, and sets the temperature, which is used up. Always followed
    /// by [`Align::restore`].
    pub fn set(
        &mut self,
        rows: Rows<'_>,
        samplers: &mut [Box<dyn Sampler>],
        candidates: &mut Candidates<'_>,
    ) -> Result<()> {
        let temperature = self.temperature.take();
        match &mut self.rule {
            Some(rule) if candidates.len() == 1 => rule.forced(),
            Some(rule) => {
                let settings = rule.settings(Distribution::of(candidates))?;
                set_all(settings, rows, samplers, &mut self.former)?;
            }
            None => {}
        }
        let Some(temperature) = temperature else { return Ok(()) };
        set_one(&TEMPERATURE, temperature.into(), rows, samplers, &mut self.former).map(drop)
    }

    /// After the step, successful or not: puts the former values back.
    pub fn restore(&mut self, rows: Rows<'_>, samplers: &mut [Box<dyn Sampler>]) {
        put_back(&mut self.former, rows, samplers);
    }

    /// A token was accepted.
    pub fn accept(&mut self) {
        self.rule.iter_mut().for_each(|rule| rule.accept());
    }

    /// The step has one candidate.
    pub fn forced(&mut self) {
        self.temperature = None;
        self.rule.iter_mut().for_each(|rule| rule.forced());
    }

    /// The last `n` accepted tokens are taken back.
    pub fn rollback(&mut self, n: usize) {
        self.rule.iter_mut().for_each(|rule| rule.rollback(n));
    }

    /// The rule's initial state.
    pub fn reset(&mut self) {
        self.rule.iter_mut().for_each(|rule| rule.reset());
    }
}

/// The samplers' rows in the table.
type Rows<'a> = &'a [Option<&'static SamplerRow>];

/// The parameter of temperatures.
static TEMPERATURE: LazyLock<Arc<str>> = LazyLock::new(|| "temp".into());

/// Makes a setting in every sampler that has the parameter, and records the former value. Returns whether one has it.
fn set_one(
    name: &Arc<str>,
    value: f64,
    rows: Rows<'_>,
    samplers: &mut [Box<dyn Sampler>],
    former: &mut Former,
) -> Result<bool> {
    let mut known = false;
    for (at, (sampler, row)) in samplers.iter_mut().zip(rows).enumerate() {
        let Some(row) = row else { continue };
        if let Some(old) = row.parameter(sampler.as_ref(), name) {
            former.push((at, Arc::clone(name), old));
            known |= row.set(sampler.as_mut(), name, value)?;
        }
    }
    Ok(known)
}

/// Makes each setting as [`set_one`].
fn set_all(
    settings: &[Setting],
    rows: Rows<'_>,
    samplers: &mut [Box<dyn Sampler>],
    former: &mut Former,
) -> Result<()> {
    for (name, value) in settings {
        if !set_one(name, *value, rows, samplers, former)? {
            return Err(unknown(name, samplers));
        }
    }
    Ok(())
}

/// Puts the values back, the last one first. Cannot fail: the samplers had them.
fn put_back(former: &mut Former, rows: Rows<'_>, samplers: &mut [Box<dyn Sampler>]) {
    while let Some((at, name, value)) = former.pop() {
        if let Some(row) = rows[at] {
            drop(row.set(samplers[at].as_mut(), &name, value));
        }
    }
}

/// The error for a parameter that no sampler has.
fn unknown(name: &str, samplers: &[Box<dyn Sampler>]) -> Error {
    let each: Vec<&str> = samplers.iter().map(|s| s.name()).collect();
    Error::new(ErrorKind::Sampling, format!("no sampler of the chain has the parameter {name}")).help(
        format!(
            "the chain is {}; to switch a sampler on, put it in switched off, as Chain.llama_cpp does",
            each.join(" -> ")
        ),
    )
}

impl Chain {
    /// Sets the steering of every step from the next one on. Rolling back keeps it, a copy has it, [`Chain::reset`]
    /// clears it, a snapshot does not contain it. Allocates nothing once there were as many edits.
    pub fn steer(&mut self, steering: &Steering) {
        self.align.steering.clone_from(steering);
    }

    /// Adds to the logit of one token in the next step alone, after what steers it; `None` adds nothing. Applying the
    /// chain uses it up.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if it is NaN or +inf.
    pub fn bias_next(&mut self, edit: Option<(TokenId, f32)>) -> Result<()> {
        self.align.bias.clear();
        edit.map_or(Ok(()), |(id, by)| self.align.bias.add(id, by))
    }

    /// Samples the next step alone at this temperature, in the samplers that have one; `None`: at their own. Applying the chain
    /// uses it up. A chain without such a sampler is unchanged; one that is not finite is an error of the step.
    pub fn temper_next(&mut self, temperature: Option<f32>) {
        self.align.temperature = temperature;
    }

    /// The steering.
    pub fn steering(&self) -> &Steering {
        &self.align.steering
    }

    /// Changes parameters, by their names in [`crate::Params`], of every sampler that has them, from the next
    /// step on: all of them or, with an error, none.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if no sampler has one, or for an invalid value.
    pub fn set_parameters(&mut self, settings: &[Setting]) -> Result<()> {
        let mut former = Former::new();
        let settings = adapt::by_keyword(settings.to_vec())?;
        let done = set_all(&settings, &self.rows, &mut self.samplers, &mut former);
        if done.is_err() {
            put_back(&mut former, &self.rows, &mut self.samplers);
        }
        done
    }

    /// [`Chain::set_parameters`] for one.
    ///
    /// # Errors
    /// The same.
    pub fn set_parameter(&mut self, name: &str, value: f64) -> Result<()> {
        self.set_parameters(&[(name.into(), value)])
    }

    /// Whether the steering bans `token`, which [`Chain::forced`] cannot know.
    pub fn vetoes(&self, token: TokenId) -> bool {
        self.align.steering.is_vetoed(token)
    }

    /// [`Chain::forced`] for a token that is known.
    ///
    /// # Errors
    /// [`ErrorKind::Logits`] if the steering vetoes it; nothing is changed then.
    pub fn sole(&mut self, token: TokenId) -> Result<()> {
        if self.vetoes(token) {
            return Err(Steering::vetoed(token));
        }
        self.forced();
        Ok(())
    }

    /// Lets `rule` pick parameters for each step from the next one on; `None`: the chain's own apply again. The rule's
    /// state follows accepted tokens and is part of snapshots.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if it declares a parameter that no sampler of the chain has, or a value that means
    /// nothing; nothing is changed then.
    pub fn adapt(&mut self, rule: Option<Box<dyn Adapt>>) -> Result<()> {
        for settings in rule.iter().flat_map(|rule| rule.declared()) {
            let tried = set_all(settings, &self.rows, &mut self.samplers, &mut self.align.former);
            put_back(&mut self.align.former, &self.rows, &mut self.samplers);
            tried.map_err(|error| error.at(adapt::show(settings)))?;
        }
        self.align.rule = rule;
        Ok(())
    }

    /// The rule that picks its parameters.
    pub fn rule(&self) -> Option<&dyn Adapt> {
        self.align.rule.as_deref()
    }
}
