//! What every matcher of a reasoning block shares: the states, and which state follows which.

use std::sync::Arc;

use super::chars::{Chars, Completing};
use super::ReasoningOptions;
use crate::finder::{Finder, START};
use logitree_tokens::vocabulary::Vocabulary;
use logitree_tokens::TokenId;

/// The initial state of a matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReasoningStart {
    /// Outside of reasoning blocks.
    #[default]
    Outside,
    /// The prompt began a reasoning block.
    Inside,
    /// The prompt began a reasoning block, and its end is forced at once.
    Closing,
}

/// The state of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The budget is 0 and no block is open: all is allowed, or what comes after the reasoning blocks.
    Off,
    /// Outside: how far a begin and an end have come.
    Outside { begin: u32, end: u32 },
    /// In a begin. Its rest must follow, or may where the answer may begin so too.
    Opening { node: u32, answer: bool },
    /// In a reasoning block of so many tokens.
    Inside { spent: usize, begin: u32, end: u32, chars: Chars },
    /// In an end that the model began; the rest must follow.
    Closing { node: u32 },
    /// In what is written where the budget is spent.
    Forced { at: u32 },
    /// In what comes after the reasoning blocks, which another matcher rules.
    Answer,
}

/// A phase, and how many reasoning blocks began so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub phase: Phase,
    pub had: usize,
}

const OUTSIDE: Phase = Phase::Outside { begin: START, end: START };
const INSIDE: Phase = Phase::Inside { spent: 0, begin: START, end: START, chars: Chars::Whole };

/// ReasoningOptions with its automata.
#[derive(Debug)]
pub(super) struct Plan {
    pub options: ReasoningOptions,
    pub vocabulary: Arc<Vocabulary>,
    pub begins: Finder,
    pub ends: Finder,
    /// The message and the first end.
    pub forced: Vec<TokenId>,
    completing: Completing,
}

impl Plan {
    /// `thinking` must have passed the checks.
    pub fn new(options: ReasoningOptions, vocabulary: &Arc<Vocabulary>) -> Plan {
        let mut except: Vec<TokenId> = options.begin.concat();
        except.extend_from_slice(vocabulary.end_tokens());
        let forced = [&options.message[..], &options.end[0][..]].concat();
        Plan {
            begins: Finder::new(&options.begin),
            ends: Finder::new(&options.end),
            forced,
            completing: Completing::new(vocabulary, &except),
            vocabulary: Arc::clone(vocabulary),
            options,
        }
    }

    pub fn is_off(&self) -> bool {
        self.options.budget == Some(0)
    }

    pub fn birth(&self, at: ReasoningStart) -> State {
        let phase = match at {
            ReasoningStart::Outside if self.is_off() => Phase::Off,
            ReasoningStart::Outside => OUTSIDE,
            ReasoningStart::Inside if self.is_off() => Phase::Forced { at: 0 },
            ReasoningStart::Inside => INSIDE,
            ReasoningStart::Closing => Phase::Forced { at: 0 },
        };
        State { phase, had: usize::from(at != ReasoningStart::Outside) }
    }

    /// Whether another reasoning block may begin.
    pub fn may_begin(&self, had: usize) -> bool {
        self.options.max_blocks.is_none_or(|most| had < most)
    }

    /// Whether so many tokens are all that may be reasoning block.
    fn is_spent(&self, spent: usize) -> bool {
        self.options.budget.is_some_and(|budget| spent >= budget)
    }

    /// The tokens that complete the character at which a spent reasoning block waits; empty while it is not
    /// restricted.
    pub fn completing(&self, phase: Phase) -> &[TokenId] {
        match phase {
            Phase::Inside { spent, chars, .. } if self.is_spent(spent) => self.completing.of(chars),
            _ => &[],
        }
    }

    /// Writes the tokens that are not allowed although nothing else is said of the phase, unordered.
    pub fn banned(&self, state: State, out: &mut Vec<TokenId>) {
        out.clear();
        match state.phase {
            Phase::Outside { begin, end } => {
                if !self.may_begin(state.had) {
                    self.tag(&self.begins, begin, out);
                }
                self.tag(&self.ends, end, out);
            }
            Phase::Inside { begin, .. } => self.tag(&self.begins, begin, out),
            _ => {}
        }
    }

    /// The tokens by which a tag would be there.
    fn tag(&self, finder: &Finder, node: u32, out: &mut Vec<TokenId>) {
        match self.options.whole {
            true => finder.completions(node, out),
            false => out.extend(finder.next(START)),
        }
    }

    /// The state after a token that is allowed, where no other constraint has a say.
    pub fn step(&self, state: State, token: TokenId) -> State {
        let State { phase, had } = state;
        match phase {
            Phase::Off | Phase::Answer => state,
            Phase::Outside { begin, end } if self.options.whole => {
                let (begin, end) = (self.begins.step(begin, token), self.ends.step(end, token));
                match self.begins.is_found(begin) {
                    true => self.begun(had),
                    false => State { phase: Phase::Outside { begin, end }, had },
                }
            }
            Phase::Outside { .. } => match self.begins.child(START, token) {
                Some(node) => self.opening(node, false, had),
                None => state,
            },
            Phase::Opening { node, answer } => match self.begins.child(node, token) {
                Some(node) => self.opening(node, answer, had),
                None => State { phase: Phase::Answer, had },
            },
            Phase::Inside { .. } => self.think(state, token),
            Phase::Closing { node } => match self.ends.child(node, token) {
                Some(node) => self.closing(node, had),
                None => state,
            },
            Phase::Forced { at } if at as usize + 1 < self.forced.len() => {
                State { phase: Phase::Forced { at: at + 1 }, had }
            }
            Phase::Forced { .. } if self.is_off() => State { phase: Phase::Off, had },
            Phase::Forced { .. } => State { phase: OUTSIDE, had },
        }
    }

    /// A begin is complete.
    fn begun(&self, had: usize) -> State {
        State { phase: INSIDE, had: had + 1 }
    }

    /// So far in a begin.
    pub fn opening(&self, node: u32, answer: bool, had: usize) -> State {
        match self.begins.is_found(node) {
            true => self.begun(had),
            false => State { phase: Phase::Opening { node, answer }, had },
        }
    }

    /// So far in an end.
    fn closing(&self, node: u32, had: usize) -> State {
        let phase = if self.ends.is_found(node) { OUTSIDE } else { Phase::Closing { node } };
        State { phase, had }
    }

    /// One more token inside.
    fn think(&self, state: State, token: TokenId) -> State {
        let State { phase: Phase::Inside { spent, begin, end, chars }, had } = state else { return state };
        let (begin, end) = match self.options.whole {
            false => match self.ends.child(START, token) {
                Some(node) => return self.closing(node, had),
                None => (begin, end),
            },
            true => match self.ends.step(end, token) {
                node if self.ends.is_found(node) => return State { phase: OUTSIDE, had },
                node => (self.begins.step(begin, token), node),
            },
        };
        let chars = chars.after(token, &self.vocabulary);
        let phase = Phase::Inside { spent: spent + 1, begin, end, chars };
        if self.is_spent(spent + 1) && self.completing(phase).is_empty() {
            return State { phase: Phase::Forced { at: 0 }, had };
        }
        State { phase, had }
    }

    /// The tokens whose logits the soft budget changes, and what it adds.
    pub fn bias(&self, state: State) -> Option<(TokenId, f32)> {
        let Phase::Inside { spent, end, .. } = state.phase else { return None };
        let (soft, budget) = (self.options.soft?, self.options.budget?);
        if spent < soft || spent >= budget {
            return None;
        }
        let share = (spent - soft + 1) as f64 / (budget - soft) as f64;
        Some((self.wanted(end), (f64::from(self.options.ramp) * share) as f32))
    }

    /// The next token of the first end, as far as it has come.
    fn wanted(&self, node: u32) -> TokenId {
        let (end, path) = (&self.options.end[0], self.ends.path(node));
        if end.starts_with(&path) {
            end[path.len()]
        } else {
            end[0]
        }
    }

    /// See [`super::BoundReasoning::state`].
    pub fn name(&self, tokens: &[TokenId], at: ReasoningStart) -> &'static str {
        let state = tokens.iter().fold(self.birth(at), |state, &token| self.step(state, token));
        match state.phase {
            Phase::Inside { .. } => "in",
            Phase::Closing { .. } | Phase::Forced { .. } => "closing",
            _ if state.had == 0 => "no",
            _ => "after",
        }
    }

    /// See [`super::BoundReasoning::leading`].
    pub fn leading(&self, tokens: &[TokenId], at: ReasoningStart) -> usize {
        let mut state = self.birth(at);
        let mut answer = if matches!(state.phase, Phase::Off | OUTSIDE) { 0 } else { tokens.len() };
        for (n, &token) in tokens.iter().enumerate() {
            let begins = match state.phase {
                OUTSIDE if self.may_begin(state.had) => self.begins.child(START, token),
                Phase::Opening { node, .. } => self.begins.child(node, token),
                Phase::Off | Phase::Outside { .. } | Phase::Answer => None,
                _ => {
                    state = self.step(state, token);
                    let is_over = matches!(state.phase, Phase::Off | OUTSIDE);
                    answer = if is_over { n + 1 } else { tokens.len() };
                    continue;
                }
            };
            let Some(node) = begins else { return answer };
            state = self.opening(node, false, state.had);
            if !matches!(state.phase, Phase::Opening { .. }) {
                answer = tokens.len();
            }
        }
        answer
    }
}
