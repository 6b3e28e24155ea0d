//! Lazy grammars as in llama.cpp (`src/llama-grammar.cpp` there): free text until a trigger, then the grammar.
//! The trigger's own text is the beginning of the grammar's text.
//!
//! llama.cpp looks for triggers at the end of each token; here a trigger counts as soon as its last character
//! is written, so that the text alone decides, not its tokenisation. A trigger after which the grammar cannot
//! continue is not allowed.
//!
//! ```text
//! free text .. a | r ..      r is a text of the grammar and starts with what triggered
//! ```
//!
//! For this, the beginning of the grammar is unfolded into a regular language until every trigger is complete
//! in it (`leads`).

mod leads;
mod quotient;
mod triggers;

pub(crate) use quotient::is_nullable;

use super::append::append;
use super::expr::{Encoding, Exprs, NOTHING};
use super::rules::{Rule, RuleBody, RuleId, Rules, TokenName, TokenNames};
use super::{CharSet, Regex};
use crate::{Error, ErrorKind, Result};
use leads::{Lead, Leads};
use quotient::after_text;
use triggers::{ambiguous, Trigger};

/// A token trigger.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenTrigger {
    /// The token.
    pub name: TokenName,
    /// Its text, if the grammar writes it as text: `"<tool_call>"`.
    pub text: Option<String>,
}

/// The triggers of a grammar.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Triggers {
    /// Strings, anywhere.
    pub words: Vec<String>,
    /// Tokens.
    pub tokens: Vec<TokenTrigger>,
    /// Regular expressions that match anywhere, or from the start of the text if they begin with `^`. The
    /// grammar starts with the match of the first group, or with the whole match if there is no group.
    pub patterns: Vec<String>,
}

/// Free text until a trigger, then `grammar`.
///
/// # Errors
/// [`ErrorKind::Constraint`] if there is no trigger, if one cannot begin a text of the grammar, if a pattern
/// leaves open where the grammar starts, or if a trigger is not complete before the grammar stops being
/// regular; [`ErrorKind::Limit`] if deciding that takes too much work.
pub fn rules(grammar: &Rules, triggers: &Triggers) -> Result<Rules> {
    let mut asker = Asker::new();
    let mut texts = Vec::new();
    for word in &triggers.words {
        texts.push(Trigger::word(word)?);
    }
    for pattern in &triggers.patterns {
        for trigger in triggers::pattern(pattern)? {
            texts.extend(as_words(trigger, &mut asker)?);
        }
    }
    if texts.is_empty() && triggers.tokens.is_empty() {
        let error = Error::new(ErrorKind::Constraint, "a lazy grammar without triggers");
        return Err(error.help("name words, tokens or patterns, or use the grammar as it is"));
    }
    let mut lazy = Lazy::new(grammar, &texts, asker);
    lazy.texts(&texts)?;
    for token in &triggers.tokens {
        lazy.token(token)?;
    }
    Ok(lazy.finish())
}

/// Maximum total length of a pattern's strings for it to be treated as words.
const MAX_LETTERS: usize = 400;

/// The fuel for all queries together.
const FUEL: u64 = 2_000_000;

/// Queries on regular languages with bounded fuel.
struct Asker {
    exprs: Exprs,
}

impl Asker {
    fn new() -> Asker {
        let mut exprs = Exprs::new(1 << 20);
        exprs.set_fuel(FUEL);
        Asker { exprs }
    }

    /// Whether the intersection of `regexes` is empty.
    fn none(&mut self, regexes: Vec<Regex>) -> Result<bool> {
        Ok(self.exprs.compile(&Regex::And(regexes), Encoding::Utf8)? == NOTHING)
    }

    /// All strings of the language, if they are few.
    fn texts(&mut self, of: &Regex) -> Result<Option<Vec<String>>> {
        let mut open = vec![(self.exprs.compile(of, Encoding::Utf8)?, Vec::new())];
        let (mut texts, mut seen) = (Vec::new(), 0);
        while let Some((at, bytes)) = open.pop() {
            seen += 1;
            if seen > MAX_LETTERS {
                return Ok(None);
            }
            if !self.exprs.outcomes(at).is_empty() {
                texts.extend(String::from_utf8(bytes.clone()));
            }
            for byte in 0..=255 {
                let next = self.exprs.derive(at, byte)?;
                if next != NOTHING {
                    let longer = bytes.iter().copied().chain([byte]).collect();
                    open.push((next, longer));
                }
            }
            if open.len() > MAX_LETTERS {
                return Ok(None);
            }
        }
        Ok(Some(texts))
    }
}

/// A pattern that matches a few strings anywhere equals these words, which are always unambiguous.
fn as_words(trigger: Trigger, asker: &mut Asker) -> Result<Vec<Trigger>> {
    let anywhere = trigger.before == Regex::anything();
    let texts = if anywhere { asker.texts(&trigger.from)? } else { None };
    let Some(texts) = texts else { return Ok(vec![trigger]) };
    texts.iter().map(|text| Trigger::word(text)).collect()
}

struct Lazy {
    rules: Vec<Rule>,
    /// The start rule in `rules`.
    start: RuleBody,
    asker: Asker,
    /// Every text that a trigger has just completed.
    triggered: Regex,
    ways: Vec<RuleBody>,
}

impl Lazy {
    fn new(grammar: &Rules, texts: &[Trigger], asker: Asker) -> Lazy {
        let mut rules = Vec::new();
        let start = RuleBody::Ref(append(&mut rules, grammar, ""));
        let triggered = Regex::or(
            texts.iter().map(|trigger| Regex::concat([trigger.before.clone(), trigger.from.clone()])),
        );
        Lazy { rules, start, asker, triggered, ways: Vec::new() }
    }

    /// Text in which nothing has triggered.
    fn free(&self) -> Regex {
        Regex::concat([self.triggered.clone(), Regex::anything()]).not()
    }

    fn leads(&mut self, from: Regex, token: bool, said: &str) -> Result<Vec<Lead>> {
        Leads { rules: &self.rules, asker: &mut self.asker, from, token, said }.of(self.start.clone())
    }

    /// Continuations after text triggers.
    fn texts(&mut self, triggers: &[Trigger]) -> Result<()> {
        if triggers.is_empty() {
            return Ok(());
        }
        for trigger in triggers {
            self.check(trigger, triggers)?;
        }
        let from = Regex::or(triggers.iter().map(|trigger| trigger.from.clone()));
        let leads = self.leads(from, false, &triggers[0].said)?;
        for trigger in triggers {
            let head = self.head(trigger, triggers);
            if self.asker.none(vec![head.clone()])? {
                continue; // another one always triggers before it
            }
            let before = self.ways.len();
            for lead in leads.iter().filter(|lead| lead.token.is_none()) {
                let text = match &trigger.word {
                    Some(word) => after_text(&lead.text, word),
                    None => {
                        let starts = Regex::concat([trigger.from.clone(), Regex::anything()]);
                        Regex::and([lead.text.clone(), starts])
                    }
                };
                if !self.asker.none(vec![text.clone()])? {
                    self.ways
                        .push(sequence([RuleBody::Lexeme(head.clone()), RuleBody::Lexeme(text)], &lead.rest));
                }
            }
            if self.ways.len() == before {
                return Err(never(&trigger.said));
            }
        }
        Ok(())
    }

    /// Checks that a pattern determines where the grammar starts, whatever the text.
    fn check(&mut self, trigger: &Trigger, all: &[Trigger]) -> Result<()> {
        if trigger.word.is_some() {
            return Ok(());
        }
        let earlier = Regex::concat([self.triggered.clone(), more()]);
        let before = Regex::and([trigger.before.clone(), self.free()]);
        let whole = Regex::concat([before, super::endings::shortest(trigger.from.clone())]);
        let mut clear = self.asker.none(vec![whole, earlier])?;
        for other in all {
            clear = clear
                && self.asker.none(ambiguous(trigger, other))?
                && self.asker.none(ambiguous(other, trigger))?;
        }
        if clear {
            return Ok(());
        }
        let message =
            format!("the trigger {} lets the grammar start at several places of one text", trigger.said);
        Err(Error::new(ErrorKind::Constraint, message)
            .help("let the group start with what cannot stand before it, or use a word"))
    }

    /// The text before the grammar ends here, with the word included, since words may overlap.
    fn head(&self, trigger: &Trigger, all: &[Trigger]) -> Regex {
        let Some(word) = &trigger.word else { return Regex::and([trigger.before.clone(), self.free()]) };
        // The word that ends first counts, and of two that end together the longer one.
        let mut not = vec![Regex::concat([self.triggered.clone(), more()])];
        let longer = all.iter().filter_map(|other| other.word.as_ref());
        let longer = longer.filter(|other| other.len() > word.len() && other.ends_with(&**word));
        not.extend(longer.map(|other| Regex::concat([Regex::anything(), Regex::text(&**other)])));
        let ends = Regex::concat([Regex::anything(), Regex::text(&**word)]);
        Regex::and([ends, Regex::or(not).not()])
    }

    /// Continuations after a token: the grammar names it as a token or writes its text.
    fn token(&mut self, trigger: &TokenTrigger) -> Result<()> {
        let said = match &trigger.name {
            TokenName::Text(text) => format!("the token {text:?}"),
            TokenName::Id(id) => format!("the token {id}"),
        };
        let text = trigger.text.as_deref().filter(|text| !text.is_empty());
        let from = text.map_or(Regex::Nothing, Regex::text);
        let leads = self.leads(from, true, &said)?;
        let set = TokenNames { tokens: vec![trigger.name.clone()], negated: false };
        let head = RuleBody::Seq(vec![RuleBody::Lexeme(self.free()), RuleBody::Tokens(set)]);
        let mut ways = Vec::new();
        for lead in leads {
            match (&lead.token, text) {
                (Some(set), _) => {
                    if set.tokens.contains(&trigger.name) != set.negated {
                        ways.push(sequence([head.clone(), RuleBody::Seq(Vec::new())], &lead.rest));
                    }
                }
                (None, Some(text)) => {
                    let rest = after_text(&lead.text, text);
                    if !self.asker.none(vec![rest.clone()])? {
                        ways.push(sequence([head.clone(), RuleBody::Lexeme(rest)], &lead.rest));
                    }
                }
                (None, None) => {}
            }
        }
        if ways.is_empty() {
            return Err(never(&said));
        }
        self.ways.extend(ways);
        Ok(())
    }

    fn finish(mut self) -> Rules {
        let mut ways = vec![RuleBody::Lexeme(self.free())];
        ways.append(&mut self.ways);
        self.rules.push(Rule::new("~lazy", RuleBody::Alt(ways)));
        Rules { start: RuleId::new(self.rules.len() - 1), rules: self.rules }
    }
}

/// One character or more.
fn more() -> Regex {
    Regex::Set(CharSet::all()).repeat(1, None)
}

fn sequence(first: [RuleBody; 2], rest: &[RuleBody]) -> RuleBody {
    RuleBody::Seq(first.into_iter().chain(rest.iter().cloned()).collect())
}

fn never(said: &str) -> Error {
    Error::new(ErrorKind::Constraint, format!("no text of the grammar starts with the trigger {said}"))
        .help("the grammar starts where the trigger starts, and has its text: write it into the grammar")
}
