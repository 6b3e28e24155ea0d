//! A grammar bound to a vocabulary: where matchers come from.

use std::sync::Arc;

use logitree_automata::stack::with_call_room;

use super::engine::Engine;
use super::known::SharedEngine;
use super::matcher::GrammarMatcher;
use super::memory::{MemoryBudget, Slot};
use super::table::LexemeTables;
use crate::binding::{kept, Key};
use crate::form::written;
use crate::{interrupt, Constraint, Matcher};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_grammar::ast::Grammar;
use logitree_grammar::earley::{self, Machine, RulesSource};
use logitree_grammar::expr::Exprs;
use logitree_grammar::json_schema::{self, JsonRules};
use logitree_grammar::rules::{Rule, RuleBody, RuleId, Rules, TokenName, TokenNames};
use logitree_tokens::mask;
use logitree_tokens::vocabulary::{TokenKind, Vocabulary};
use serde_json::Value;

/// What a grammar may cost while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GrammarLimits {
    /// Work of one call, in steps of at most about a tenth of a microsecond. Counted, not timed: the same on every machine.
    pub fuel: u64,
    /// Bytes of cached masks; evicted masks are computed again.
    pub mask_bytes: usize,
    /// Bytes of automata after which new matchers get new ones. About twice that is the end of a matcher.
    pub automata_bytes: usize,
}

impl Default for GrammarLimits {
    fn default() -> Self {
        GrammarLimits { fuel: 2_500_000, mask_bytes: 64 << 20, automata_bytes: 128 << 20 }
    }
}

/// A schema whose values have all that JSON has, beside keys that it names.
const ANY_OBJECT: &str = r#"{"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 80},
    "count": {"type": "integer"},
    "created": {"type": "string", "format": "date-time"}
}}"#;
/// A schema of the usual formats: reading it finds their languages, which all schemas share. Those of other scripts than Latin
/// take longer than all of these.
const ANY_FORMAT: &str = r#"{"anyOf": [
    {"format": "date-time"}, {"format": "date"}, {"format": "time"}, {"format": "duration"}, {"format": "email"},
    {"format": "hostname"}, {"format": "ipv4"}, {"format": "ipv6"}, {"format": "uri"}, {"format": "uri-reference"},
    {"format": "uuid"}, {"format": "json-pointer"}, {"format": "regex"}
]}"#;
/// Texts after which the lexemes of JSON begin, or are being read.
const BEGINNINGS: [&str; 12] = [
    "",
    "{",
    "{\"name",
    "{\"name\": ",
    "{\"name\": \"A",
    "{\"name\": \"A\"",
    "{\"other\": ",
    "{\"other\": \"A",
    "{\"other\": [1",
    "{\"count\": ",
    "{\"count\": 1",
    "{\"created\": \"",
];

/// A grammar bound to a vocabulary.
///
/// ```
/// use std::sync::Arc;
/// use logitree_constraint::{BoundGrammar, GrammarLimits};
/// use logitree_grammar::gbnf;
/// use logitree_tokens::vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};
///
/// let tokens = ["[", "]", "7", "]]"].map(|text| Token { bytes: text.into(), kind: TokenKind::Normal });
/// let vocabulary = Arc::new(Vocabulary::new(tokens, VocabularyOptions::default())?);
/// let rules = Arc::new(gbnf::parse("root ::= \"[\" root \"]\" | \"7\"")?);
/// let grammar = BoundGrammar::new(rules, &vocabulary, None, GrammarLimits::default())?;
/// let mut matcher = grammar.matcher()?;
/// for token in [0, 0, 2, 3] {
///     assert!(matcher.is_allowed(token)?);
///     matcher.accept(token)?;
/// }
/// assert!(matcher.is_finished());
/// # Ok::<(), logitree_constraint::Error>(())
/// ```
pub struct BoundGrammar {
    rules: Arc<Rules>,
    vocabulary: Arc<Vocabulary>,
    limits: GrammarLimits,
    ends: Arc<[TokenId]>,
    engine: Arc<Slot>,
    budget: Arc<MemoryBudget>,
}

impl BoundGrammar {
    /// Binds `rules` to `vocabulary`. `ends` are the tokens that may follow a complete text that could also continue;
    /// `None` means the vocabulary's end-of-generation ids.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if no text matches, if a token that the grammar names is not in the vocabulary, or if
    /// an end token is not; [`ErrorKind::Limit`] if compiling, or finding the first mask, takes more than the limits.
    pub fn new(
        rules: Arc<Rules>,
        vocabulary: &Arc<Vocabulary>,
        ends: Option<&[TokenId]>,
        limits: GrammarLimits,
    ) -> Result<BoundGrammar> {
        let mut ends = ends.unwrap_or(vocabulary.end_tokens()).to_vec();
        ends.sort_unstable();
        ends.dedup();
        for &id in &ends {
            vocabulary.check(id).map_err(|e| Error { kind: ErrorKind::Constraint, ..e })?;
        }
        let ends: Arc<[TokenId]> = ends.into();
        let budget = Arc::clone(&shared(vocabulary).budget);
        let vocabulary = Arc::clone(vocabulary);
        let grammar = BoundGrammar { rules, vocabulary, limits, ends, engine: Arc::default(), budget };
        grammar.engine()?.session().probe()?;
        Ok(grammar)
    }

    /// The grammar of `node` over `vocabulary`, which keeps it: equal arguments give the same grammar.
    ///
    /// # Errors
    /// As [`Grammar::rules`] and [`BoundGrammar::new`].
    pub fn of(
        node: &Grammar,
        vocabulary: &Arc<Vocabulary>,
        ends: Option<&[TokenId]>,
        limits: GrammarLimits,
    ) -> Result<Arc<BoundGrammar>> {
        let key = Key::new::<BoundGrammar>(Arc::clone(node.content()), &(ends, limits));
        kept(vocabulary, key, |vocabulary| BoundGrammar::new(node.rules()?, vocabulary, ends, limits))
    }

    /// Whether `node` names a token of `vocabulary` that is text. How that text is spelled is then said by the grammar; control
    /// tokens and user-defined tokens have no other spelling.
    ///
    /// # Errors
    /// As [`Grammar::rules`]; [`ErrorKind::Constraint`] if a token is not in the vocabulary.
    pub fn names_text(node: &Grammar, vocabulary: &Vocabulary) -> Result<bool> {
        let is_text = |id: TokenId| {
            let kind = vocabulary.kind(id);
            kind.is_text() && kind != TokenKind::UserDefined
        };
        for set in node.rules()?.named_tokens() {
            if resolve(set, vocabulary)?.ids(vocabulary.len()).into_iter().any(is_text) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds ahead what grammars need of a vocabulary: its trie, and the tables of JSON's strings, keys, numbers and
    /// whitespace, the automata of integers and of `date-time`, and the languages of usual formats. Without it, the first masks of the first grammar that needs
    /// them find them.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if the vocabulary exceeds the trie's limits.
    pub fn prepare(vocabulary: &Arc<Vocabulary>) -> Result<()> {
        let options = json_schema::SchemaOptions::default();
        json_schema::load(ANY_FORMAT, &options, &[])?;
        let schema = json_schema::load(ANY_OBJECT, &options, &[])?;
        let body = RuleBody::Json(Arc::new(schema));
        let rules = Rules { rules: vec![Rule::new("~json", body)], start: RuleId(0) };
        let grammar = BoundGrammar::new(Arc::new(rules), vocabulary, Some(&[]), GrammarLimits::default())?;
        let engine = grammar.engine()?;
        for text in BEGINNINGS {
            let mut session = engine.session();
            let mut config = engine.start;
            for byte in text.bytes() {
                config = session.engine().machine.step(config, byte)?;
            }
            session.mask(config)?;
        }
        Ok(())
    }

    /// A matcher at the beginning of a text.
    ///
    /// # Errors
    /// As [`BoundGrammar::new`], where the automata have grown so large that they are rebuilt.
    pub fn matcher(&self) -> Result<Box<dyn Matcher>> {
        Ok(Box::new(GrammarMatcher::new(self.engine()?)))
    }

    /// Whether the whole of `text` matches if its tokens are not counted; `None` where none are.
    ///
    /// # Errors
    /// As [`BoundGrammar::matcher`].
    pub(crate) fn matches_uncounted(&self, text: &[u8]) -> Result<Option<bool>> {
        let engine = self.engine()?;
        let mut session = engine.session();
        if !session.engine().machine.counts_tokens() {
            return Ok(None);
        }
        let mut config = engine.start;
        for byte in text {
            session.refuel();
            let (next, taken) = session.walked(config, std::slice::from_ref(byte))?;
            if taken == 0 {
                return Ok(Some(false));
            }
            config = next;
        }
        Ok(Some(session.is_accepting(config)))
    }

    /// The engine, a new one where there is none or where it has grown too large.
    fn engine(&self) -> Result<Arc<SharedEngine>> {
        self.budget.touch(&self.engine);
        let mut slot = interrupt::lock(&self.engine);
        let most = self.limits.automata_bytes + self.limits.mask_bytes;
        if let Some(engine) = slot.as_ref().filter(|engine| engine.memory() <= most && !engine.is_crowded()) {
            return Ok(Arc::clone(engine));
        }
        let fresh = with_call_room(|| start(&self.rules, &self.vocabulary, &self.ends, self.limits))?;
        Ok(Arc::clone(slot.insert(Arc::new(SharedEngine::new(fresh, &self.budget)))))
    }

    /// The vocabulary it is bound to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// About how many bytes of memory its automata and masks hold; tables of lexemes that the vocabulary keeps for
    /// all its grammars are not counted.
    pub fn memory(&self) -> usize {
        let slot = interrupt::lock(&self.engine);
        slot.as_ref().map_or(0, |engine| engine.memory())
    }

    /// The steps of fuel that all calls on it and its matchers have consumed, those for its automata included. Counted,
    /// not timed: the same calls cost the same on every machine.
    pub fn steps(&self) -> u64 {
        let slot = interrupt::lock(&self.engine);
        slot.as_ref().map_or(0, |engine| engine.steps())
    }
}

impl Constraint for BoundGrammar {
    /// A matcher over the vocabulary that it is bound to.
    ///
    /// # Errors
    /// As [`BoundGrammar::matcher`]; [`ErrorKind::Constraint`] for another vocabulary.
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        if vocabulary != &self.vocabulary {
            return Err(Error::new(ErrorKind::Constraint, "the grammar is bound to another vocabulary"));
        }
        BoundGrammar::matcher(self)
    }
}

impl Constraint for Grammar {
    /// With the default limits, and the vocabulary's end-of-generation ids as end tokens; others: [`BoundGrammar::of`].
    ///
    /// # Errors
    /// As [`BoundGrammar::of`].
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        BoundGrammar::of(self, vocabulary, None, GrammarLimits::default())?.matcher()
    }

    fn key(&self) -> Option<Key> {
        Some(Key::new::<Grammar>(Arc::clone(self.content()), &()))
    }

    fn form(&self) -> Result<Value> {
        let parts = serde_json::from_str(self.written()).expect("it was written as JSON");
        Ok(written("grammar", [("parts", parts)]))
    }
}

/// What all grammars of a vocabulary share.
#[derive(Default)]
struct Shared {
    tables: Arc<LexemeTables>,
    budget: Arc<MemoryBudget>,
}

fn shared(vocabulary: &Vocabulary) -> Arc<Shared> {
    vocabulary.attached(Shared::default).unwrap_or_default()
}

/// Whether the grammars of this vocabulary hold so much memory that those without a matcher forget theirs.
pub(crate) fn is_crowded(vocabulary: &Vocabulary) -> bool {
    shared(vocabulary).budget.is_crowded()
}

impl Drop for BoundGrammar {
    fn drop(&mut self) {
        self.budget.remove(&self.engine);
    }
}

fn start(
    rules: &Arc<Rules>,
    vocabulary: &Arc<Vocabulary>,
    ends: &Arc<[TokenId]>,
    limits: GrammarLimits,
) -> Result<Engine> {
    vocabulary.trie()?;
    let mut exprs = Exprs::new(limits.automata_bytes / 64);
    exprs.set_fuel(limits.fuel);
    let source = RulesSource::new(rules, &mut exprs, Some(Box::new(JsonRules::new())))?;
    let token_sets = source
        .token_sets()
        .iter()
        .map(|set| Ok((resolve(set, vocabulary)?, !set.negated)))
        .collect::<Result<Vec<_>>>()?;
    let begin = source.start();
    let most = earley::MachineLimits { bytes: limits.automata_bytes, ..earley::MachineLimits::default() };
    let machine = Machine::new(Box::new(source), begin, exprs, most)?;
    let tables = Arc::clone(&shared(vocabulary).tables);
    Ok(Engine::new(machine, Arc::clone(vocabulary), limits, Arc::clone(ends), token_sets, tables))
}

/// The ids of a token set.
fn resolve(set: &TokenNames, vocabulary: &Vocabulary) -> Result<mask::TokenSet> {
    let mut ids = Vec::new();
    for name in &set.tokens {
        match name {
            TokenName::Id(id) => {
                ids.push(vocabulary.check(*id).map_err(|e| Error { kind: ErrorKind::Constraint, ..e })?);
            }
            TokenName::Text(text) => ids.push(named(text, vocabulary)?),
        }
    }
    ids.sort_unstable();
    ids.dedup();
    if set.negated {
        ids = (0..vocabulary.len() as TokenId).filter(|id| ids.binary_search(id).is_err()).collect();
    }
    Ok(mask::TokenSet::from_sorted(&ids, vocabulary.len()))
}

/// The control token of this text, or the one token that spells it.
fn named(text: &str, vocabulary: &Vocabulary) -> Result<TokenId> {
    let all = vocabulary.find(text.as_bytes());
    let special = all.iter().copied().find(|&id| !vocabulary.kind(id).is_text());
    special.or(all.first().copied()).ok_or_else(|| {
        Error::new(ErrorKind::Constraint, format!("the vocabulary has no token {text:?}"))
            .help("name a token of the model's vocabulary, or write the text in quotes")
    })
}
