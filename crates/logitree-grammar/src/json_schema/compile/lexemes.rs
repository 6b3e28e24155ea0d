//! Compiles strings, numbers, keys and punctuation to expressions over bytes.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::super::normalize::{
    spell, Facts, LanguageId, NormalForms, NumberFacts, Scalar, ScalarId, StringFacts,
};
use super::super::number;
use super::super::options::{is_separator, NumberSpelling, SchemaOptions, Whitespace};
use super::super::schema::TypeSet;
use super::divisibility;
use super::number_lexemes::{number_regex, one_of};
use super::pair_lexemes::{without, PairLexemes};
use super::unique::SingleValue;
use crate::endings::free;
use crate::expr::{Encoding, ExprId, Exprs, EMPTY, NOTHING};
use crate::{CharSet, Regex};
use crate::{Error, ErrorKind, Result};

/// Maximum number of spaces of an indent with bounded white space.
const MAX_SPACES: u32 = 256;
/// Maximum number of tabs of an indent with bounded white space.
const MAX_TABS: u32 = 64;

/// The lexemes of one schema.
#[derive(Clone)]
pub(super) struct Lexemes {
    /// What may follow an opening bracket.
    pub open: ExprId,
    /// What may precede a closing bracket.
    pub close: ExprId,
    /// White space before and after the whole value, where there may be any.
    pub margin: Option<ExprId>,
    /// A comma and the white space around it.
    pub comma: ExprId,
    /// A colon and the white space around it.
    pub colon: ExprId,
    /// Whether strings are written in ASCII only.
    pub ascii: bool,
    /// What is there beside JSON, where objects are pairs.
    pub pairs: Option<PairLexemes>,
    spelling: NumberSpelling,
    /// The characters of any string in its one canonical spelling, without quotes.
    pub canonical: ExprId,
    /// The characters of any string in any spelling, without quotes.
    pub(super) any: ExprId,
    quote: ExprId,
    /// One character of a string in any spelling.
    loose: ExprId,
    /// The texts without what is excluded, if something is.
    allowed: Option<ExprId>,
    regexes: FxHashMap<(LanguageId, Spelling), ExprId>,
    strings: FxHashMap<Arc<StringFacts>, ExprId>,
    numbers: FxHashMap<(u8, Option<Arc<NumberFacts>>), ExprId>,
}

/// How the characters of strings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Spelling {
    /// As Python's `json.dumps` writes them.
    Canonical,
    /// As they are, where strings have no quotes.
    Raw,
    /// In every way that JSON has. A set of strings then has all spellings of each string or none, so that complements and
    /// intersections are exact.
    Any,
}

/// Lexemes and the arena that they are in.
type Prepared = (Exprs, Lexemes);

fn prepared(options: &SchemaOptions) -> Result<Prepared> {
    let mut exprs = Exprs::new(usize::MAX);
    let lexemes = Lexemes::made(options, &mut exprs)?;
    Ok((exprs, lexemes))
}

impl Lexemes {
    /// Those that all schemas with the same options have: found once for each of the usual options.
    pub(super) fn new(options: &SchemaOptions, exprs: &mut Exprs) -> Result<Lexemes> {
        static PREPARED: [OnceLock<Option<Prepared>>; 6] = [const { OnceLock::new() }; 6];
        let is_usual = options.separators.is_none() && options.excludes.is_empty();
        if is_usual && options.layout.is_none() && options.pairs.is_none() {
            let whitespace = match options.whitespace {
                Whitespace::Compact => 0,
                Whitespace::Bounded => 1,
                Whitespace::Free => 2,
            };
            let place = &PREPARED[2 * whitespace + usize::from(options.ascii)];
            if let Some((prepared, lexemes)) = place.get_or_init(|| prepared(options).ok()) {
                if exprs.take_over(prepared)? {
                    return Ok(Lexemes { spelling: options.numbers, ..lexemes.fresh() });
                }
            }
        }
        Lexemes::made(options, exprs)
    }

    /// The same for another schema.
    pub(super) fn fresh(&self) -> Lexemes {
        let (regexes, strings, numbers) = Default::default();
        Lexemes { regexes, strings, numbers, ..*self }
    }

    fn made(options: &SchemaOptions, exprs: &mut Exprs) -> Result<Lexemes> {
        let [open, close, comma, colon] = punctuation(options, exprs)?;
        let is_free = options.whitespace == Whitespace::Free && options.separators.is_none();
        let margin = match (&options.pairs, is_free && options.layout.is_none()) {
            (Some(form), _) if form.has_blanks => some(open, exprs)?,
            (Some(_), _) => None,
            (None, true) => Some(exprs.compile(&blank().repeat(1, None), Encoding::Utf8)?),
            (None, false) => None,
        };
        let ascii = options.ascii;
        let loose = exprs.chars(&CharSet::all(), Encoding::AnyJson { ascii })?;
        let excludes: Vec<&str> = options.excludes.iter().map(String::as_str).collect();
        let allowed = match excludes[..] {
            [] => None,
            _ => Some(exprs.compile(&free(&excludes, None), Encoding::Utf8)?),
        };
        let (canonical, any) = (exprs.any_text(Encoding::Json { ascii })?, exprs.repeat(loose, 0, None)?);
        let form = options.pairs.as_ref();
        let pairs = form.map(|form| PairLexemes::new(form, ascii, allowed, exprs)).transpose()?;
        Ok(Lexemes {
            open,
            close,
            margin,
            comma,
            colon,
            ascii,
            pairs,
            spelling: options.numbers,
            canonical: without(allowed, canonical, exprs)?,
            any: without(allowed, any, exprs)?,
            allowed,
            quote: exprs.bytes(b"\"")?,
            loose,
            regexes: FxHashMap::default(),
            strings: FxHashMap::default(),
            numbers: FxHashMap::default(),
        })
    }

    fn encoding(&self, spelling: Spelling) -> Encoding {
        match spelling {
            Spelling::Canonical => Encoding::Json { ascii: self.ascii },
            Spelling::Any => Encoding::AnyJson { ascii: self.ascii },
            Spelling::Raw => Encoding::Utf8,
        }
    }

    /// The characters of any string.
    fn all(&self, spelling: Spelling, exprs: &mut Exprs) -> Result<ExprId> {
        match spelling {
            Spelling::Canonical => Ok(self.canonical),
            Spelling::Any => Ok(self.any),
            Spelling::Raw => match self.allowed {
                Some(allowed) => Ok(allowed),
                None => exprs.compile(&Regex::anything(), Encoding::Utf8),
            },
        }
    }

    /// The characters of the strings in a language.
    pub(super) fn matching(
        &mut self,
        forms: &NormalForms,
        id: LanguageId,
        spelling: Spelling,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        if let Some(&known) = self.regexes.get(&(id, spelling)) {
            return Ok(known);
        }
        let made = exprs.compile(forms.regex(id), self.encoding(spelling))?;
        self.regexes.insert((id, spelling), made);
        Ok(made)
    }

    /// The characters of the strings that are none of `texts`.
    pub(super) fn none_of(
        &self,
        forms: &NormalForms,
        texts: &[ScalarId],
        spelling: Spelling,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        if texts.is_empty() {
            return self.all(spelling, exprs);
        }
        let listed = self.listed(forms, texts, spelling, exprs)?;
        let not = exprs.not(listed)?;
        let all = self.all(spelling, exprs)?;
        exprs.and(&[all, not])
    }

    /// The characters of these texts.
    fn listed(
        &self,
        forms: &NormalForms,
        texts: &[ScalarId],
        spelling: Spelling,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        if spelling == Spelling::Any {
            let texts: Vec<(&str, ExprId)> =
                texts.iter().map(|&id| (&**forms.texts.text(id), EMPTY)).collect();
            return exprs.spelled(&texts, self.ascii);
        }
        if spelling == Spelling::Raw {
            let texts: Vec<_> = texts.iter().map(|&id| (forms.texts.text(id).as_bytes(), EMPTY)).collect();
            return exprs.literals(&texts);
        }
        let spelled: Vec<_> = texts.iter().map(|&id| spell(forms.texts.text(id), self.ascii)).collect();
        let inner: Vec<_> = spelled.iter().map(|text| (&text[1..text.len() - 1], EMPTY)).collect();
        exprs.literals(&inner)
    }

    /// A text that is named, in the one or two ways in which Python's `json.dumps` writes it: with and without its
    /// `ensure_ascii`.
    pub(super) fn written(&self, text: &str) -> impl Iterator<Item = Vec<u8>> {
        let usual = spell(text, self.ascii);
        let escaped = text.bytes().any(|byte| byte >= 0x7f).then(|| {
            let spelled = spell(text, true);
            spelled.into_iter().fold(Vec::new(), |mut all, byte| {
                // The one character of ASCII that only `ensure_ascii` escapes.
                all.extend_from_slice(if byte == 0x7f { b"\\u007f" } else { std::slice::from_ref(&byte) });
                all
            })
        });
        let escaped = escaped.filter(|escaped| *escaped != usual);
        [usual].into_iter().chain(escaped)
    }

    /// A character class of strings between quotes.
    pub(super) fn quoted(&self, chars: ExprId, exprs: &mut Exprs) -> Result<ExprId> {
        exprs.concat(&[self.quote, chars, self.quote])
    }

    /// The characters of the strings that fulfil `facts`.
    pub(super) fn chars(
        &mut self,
        forms: &NormalForms,
        facts: Option<&StringFacts>,
        spelling: Spelling,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        let Some(facts) = facts else { return self.all(spelling, exprs) };
        let (mut chars, counted) = self.combined(forms, facts, spelling, exprs)?;
        // Any string but some: what is left of it is never empty, and its tables are nearly those of any string.
        if counted.is_none() && facts.languages.is_empty() && facts.choices.is_empty() {
            return chars.map_or_else(|| self.all(spelling, exprs), Ok);
        }
        // Counts would multiply the states of the automaton. Beside it they are numbers.
        if let Some(all) = chars {
            let is_counted = counted.is_some();
            chars = Some(if is_counted { exprs.as_automaton(all)? } else { exprs.determined(all)? });
        }
        exprs.and(&chars.into_iter().chain(counted).collect::<Vec<_>>())
    }

    /// The characters of the strings that fulfil all of `facts` but their length, if there is more than that, and those of
    /// the strings of the right length, if there is a wrong one.
    fn combined(
        &mut self,
        forms: &NormalForms,
        facts: &StringFacts,
        spelling: Spelling,
        exprs: &mut Exprs,
    ) -> Result<(Option<ExprId>, Option<ExprId>)> {
        if let Some(only) = &facts.only {
            return Ok((Some(self.listed(forms, only, spelling, exprs)?), None));
        }
        let mut counted = None;
        if facts.min > 0 || facts.max.is_some() {
            let (min, max) = counts(facts)?;
            let any = exprs.chars(&CharSet::all(), self.encoding(spelling))?;
            counted = Some(exprs.repeat(any, min, max)?);
        }
        let mut all = Vec::new();
        for &(regex, wanted) in &facts.languages {
            let matching = self.matching(forms, regex, spelling, exprs)?;
            all.push(if wanted { matching } else { exprs.not(matching)? });
        }
        if !facts.not.is_empty() {
            all.push(self.none_of(forms, &facts.not, spelling, exprs)?);
        }
        for ways in &facts.choices {
            let mut any = Vec::with_capacity(ways.len());
            for way in ways.iter() {
                let (chars, counted) = self.combined(forms, way, spelling, exprs)?;
                any.push(exprs.and(&chars.into_iter().chain(counted).collect::<Vec<_>>())?);
            }
            all.push(exprs.or(&any)?);
        }
        if all.is_empty() && counted.is_some() && self.allowed.is_none() {
            return Ok((None, counted));
        }
        let settled = !facts.choices.is_empty()
            || facts.languages.iter().any(|&(_, wanted)| wanted)
            || !facts.not.is_empty();
        if !settled {
            all.push(self.all(spelling, exprs)?);
        }
        Ok((Some(exprs.and(&all)?), counted))
    }

    /// The strings that fulfil `facts`, quotes included.
    pub(super) fn string(
        &mut self,
        forms: &NormalForms,
        facts: Option<&Arc<StringFacts>>,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        let Some(facts) = facts else { return self.in_quotes(self.any, exprs) };
        if let Some(&known) = self.strings.get(facts) {
            return Ok(known);
        }
        let plain = facts.only.is_none()
            && facts.languages.is_empty()
            && facts.not.is_empty()
            && facts.choices.is_empty();
        let made = if let Some(only) = &facts.only {
            let spelled: Vec<_> = only.iter().flat_map(|&id| self.spelled(forms.texts.text(id))).collect();
            let texts: Vec<_> = spelled.iter().map(|text| (text.as_slice(), EMPTY)).collect();
            exprs.literals(&texts)?
        } else if plain {
            let (min, max) = counts(facts)?;
            let counted = exprs.repeat(self.loose, min, max)?;
            let counted = without(self.allowed, counted, exprs)?;
            self.in_quotes(counted, exprs)?
        } else {
            let chars = self.chars(forms, Some(facts), Spelling::Canonical, exprs)?;
            self.in_quotes(chars, exprs)?
        };
        self.strings.insert(Arc::clone(facts), made);
        Ok(made)
    }

    /// The numbers of `types` that fulfil `facts`.
    pub(super) fn number(
        &mut self,
        forms: &NormalForms,
        types: TypeSet,
        facts: Option<&Arc<NumberFacts>>,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        let key = (types.0 & TypeSet::NUMBER.0, facts.cloned());
        if let Some(&known) = self.numbers.get(&key) {
            return Ok(known);
        }
        let set = self.number_set(forms, TypeSet(key.0), facts.map(|facts| &**facts), exprs)?;
        let mut all = vec![set];
        let choosing = facts.filter(|facts| !facts.choices.is_empty());
        match choosing.and_then(|facts| divisibility::simplified(facts, types)) {
            Some(ways) => all.push(one_of(&ways, facts.is_some_and(|facts| facts.digits_only), exprs)?),
            None => {
                for ways in choosing.iter().flat_map(|facts| &facts.choices) {
                    all.push(self.choice(forms, types, ways, exprs)?);
                }
            }
        }
        let made = exprs.and(&all)?;
        self.numbers.insert(key, made);
        Ok(made)
    }

    /// The numbers of `types` that fulfil `facts` but for its choices, in the spellings of the options.
    fn number_set(
        &self,
        forms: &NormalForms,
        types: TypeSet,
        facts: Option<&NumberFacts>,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        let only_digits = self.spelling == NumberSpelling::Plain && types == TypeSet::INTEGER;
        let regex = number_regex(forms, types, facts, only_digits, exprs)?;
        let set = exprs.compile(&regex, Encoding::Utf8)?;
        if self.spelling == NumberSpelling::Any {
            return Ok(set);
        }
        let plain = if only_digits { number::plain_integer() } else { number::plain()? };
        let plain = exprs.compile(&plain, Encoding::Utf8)?;
        let Some(only) = facts.and_then(|facts| facts.only.as_deref()) else {
            let any = facts.is_none() && types != TypeSet::FRACTION;
            return if any { Ok(plain) } else { exprs.and(&[set, plain]) };
        };
        // A value that is asked for may be written with all of its digits, however many these are.
        let texts: Vec<String> = only
            .iter()
            .filter_map(|&id| match forms.texts.get(id) {
                Scalar::Number(number) => Some(number.in_digits()),
                Scalar::Text(_) => None,
            })
            .collect();
        let texts: Vec<_> = texts.iter().map(|text| (text.as_bytes(), EMPTY)).collect();
        let parts = [exprs.and(&[set, plain])?, exprs.literals(&texts)?];
        exprs.or(&parts)
    }

    /// The numbers of `types` that fulfil one of `ways`.
    fn choice(
        &mut self,
        forms: &NormalForms,
        types: TypeSet,
        ways: &[Arc<NumberFacts>],
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        let mut any = Vec::with_capacity(ways.len());
        for way in ways {
            let types = if way.types == 0 { types.0 } else { way.types & types.0 };
            any.push(if types == 0 {
                NOTHING
            } else {
                self.number(forms, TypeSet(types), Some(way), exprs)?
            });
        }
        exprs.or(&any)
    }

    /// One value.
    pub(super) fn single(
        &self,
        forms: &NormalForms,
        single: SingleValue,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        match single {
            SingleValue::Null => exprs.bytes(b"null"),
            SingleValue::Bool(false) => exprs.bytes(b"false"),
            SingleValue::Bool(true) => exprs.bytes(b"true"),
            SingleValue::Scalar(id) => match forms.texts.get(id) {
                Scalar::Text(text) => {
                    let spelled: Vec<_> = self.spelled(text).collect();
                    let texts: Vec<_> = spelled.iter().map(|text| (text.as_slice(), EMPTY)).collect();
                    exprs.literals(&texts)
                }
                Scalar::Number(number) => {
                    let facts = NumberFacts { only: Some(Arc::new([id])), ..NumberFacts::default() };
                    let types = if number.is_integer() && self.spelling == NumberSpelling::Plain {
                        TypeSet::INTEGER
                    } else {
                        TypeSet::NUMBER
                    };
                    self.number_set(forms, types, Some(&facts), exprs)
                }
            },
        }
    }

    /// Values of `facts` that are no array and no object. Some may be left out: then a string is written in its one canonical
    /// way, and a number in one of the spellings of [`number::comparable`].
    pub(super) fn scalars(
        &mut self,
        forms: &NormalForms,
        facts: &Facts,
        without: Option<&LeftOut>,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        let mut all = Vec::new();
        if facts.any_of(TypeSet::NULL) && !without.is_some_and(|without| without.null) {
            all.push(exprs.bytes(b"null")?);
        }
        for (bit, text) in [(1, &b"false"[..]), (2, b"true")] {
            if facts.bools & bit & !without.map_or(0, |without| without.bools) != 0 {
                all.push(exprs.bytes(text)?);
            }
        }
        if self.has_literals() && without.is_none() {
            all.push(self.words(facts, exprs)?);
        }
        if facts.any_of(TypeSet::NUMBER) {
            let mut number = self.number(forms, facts.types, facts.number.as_ref(), exprs)?;
            if let Some(without) = without {
                let mut parts = vec![number];
                let plain = facts.number.as_deref().is_none_or(|number| *number == NumberFacts::default());
                let both = facts.types.0 & TypeSet::NUMBER.0 == TypeSet::NUMBER.0;
                if plain && both || facts.number.as_ref().is_some_and(|number| !number.choices.is_empty()) {
                    parts.push(exprs.compile(&number::comparable()?, Encoding::Utf8)?);
                }
                number = all_but(parts, &without.numbers, exprs)?;
            }
            all.push(number);
        }
        if facts.any_of(TypeSet::STRING) {
            all.push(match without {
                None => self.string(forms, facts.string.as_ref(), exprs)?,
                Some(without) => {
                    let chars = self.chars(forms, facts.string.as_deref(), Spelling::Canonical, exprs)?;
                    let chars = all_but(vec![chars], &without.strings, exprs)?;
                    self.quoted(chars, exprs)?
                }
            });
        }
        let mut live = Vec::with_capacity(all.len());
        for part in all {
            if exprs.is_alive(part)? {
                live.push(part);
            }
        }
        exprs.or(&live)
    }

    /// The canonical characters of these texts, without quotes.
    pub(super) fn texts(&self, texts: &[Arc<str>], exprs: &mut Exprs) -> Result<ExprId> {
        let spelled: Vec<_> = texts.iter().map(|text| spell(text, self.ascii)).collect();
        let inner: Vec<_> = spelled.iter().map(|text| (&text[1..text.len() - 1], EMPTY)).collect();
        exprs.literals(&inner)
    }
}

/// Scalar values that are left out of a lexeme.
#[derive(Default)]
pub(super) struct LeftOut {
    pub null: bool,
    /// Which of false (1) and true (2).
    pub bools: u8,
    /// Languages of numbers.
    pub numbers: Vec<ExprId>,
    /// Languages of strings, without quotes.
    pub strings: Vec<ExprId>,
}

/// What is in all of `parts` and in none of `without`.
fn all_but(mut parts: Vec<ExprId>, without: &[ExprId], exprs: &mut Exprs) -> Result<ExprId> {
    for &one in without {
        parts.push(exprs.not(one)?);
    }
    exprs.and(&parts)
}

/// How many characters, as a repetition counts them.
fn counts(facts: &StringFacts) -> Result<(u32, Option<u32>)> {
    let min = u32::try_from(facts.min).ok().filter(|&min| min < u32::MAX).ok_or_else(|| {
        Error::new(ErrorKind::Limit, format!("minLength {} is more than is counted", facts.min))
    })?;
    // No text reaches a maximum length beyond u32.
    Ok((min, facts.max.and_then(|max| u32::try_from(max).ok()).filter(|&max| max < u32::MAX)))
}

/// The white space after an opening and before a closing bracket, the comma and the colon.
fn punctuation(options: &SchemaOptions, exprs: &mut Exprs) -> Result<[ExprId; 4]> {
    if let Some(layout) = &options.layout {
        let about = |sign: &Regex| Regex::concat([layout.blank.clone(), sign.clone(), layout.blank.clone()]);
        let all = [layout.blank.clone(), about(&layout.comma), about(&layout.colon)];
        let [blank, comma, colon] = all.map(|regex| exprs.compile(&regex, Encoding::Utf8));
        let blank = blank?;
        return Ok([blank, blank, comma?, colon?]);
    }
    if let Some((item, key)) = &options.separators {
        for (text, sign) in [(item, ','), (key, ':')] {
            if !is_separator(text, sign) {
                let message = format!("the separator {text:?} is not \"{sign}\" with white space about it");
                return Err(Error::new(ErrorKind::Constraint, message).at("separators"));
            }
        }
        return Ok([EMPTY, EMPTY, exprs.bytes(item.as_bytes())?, exprs.bytes(key.as_bytes())?]);
    }
    let (comma, colon) = (Regex::text(","), Regex::text(":"));
    let space = || Regex::text(" ");
    let [open, comma, colon] = match options.whitespace {
        Whitespace::Compact => [Regex::Empty, comma, colon],
        Whitespace::Bounded => {
            let indents = [space().repeat(0, Some(MAX_SPACES)), Regex::text("\t").repeat(1, Some(MAX_TABS))];
            let line = Regex::concat([Regex::text("\n"), Regex::or(indents)]);
            let blank = Regex::or([space(), line]).optional();
            [blank.clone(), Regex::concat([comma, blank]), Regex::concat([colon, space().optional()])]
        }
        Whitespace::Free => {
            let blank = blank().repeat(0, None);
            let about = |sign| Regex::concat([blank.clone(), sign, blank.clone()]);
            [blank.clone(), about(comma), about(colon)]
        }
    };
    let [open, comma, colon] = [open, comma, colon].map(|regex| exprs.compile(&regex, Encoding::Utf8));
    let open = open?;
    Ok([open, open, comma?, colon?])
}

/// White space that is not empty, within a language that may be.
fn some(blank: ExprId, exprs: &mut Exprs) -> Result<Option<ExprId>> {
    let some = exprs.compile(&Regex::Set(CharSet::all()).repeat(1, None), Encoding::Utf8)?;
    let made = exprs.and(&[blank, some])?;
    Ok((made != NOTHING && exprs.is_alive(made)?).then_some(made))
}

/// One character of white space.
fn blank() -> Regex {
    Regex::Set(CharSet::from_ranges([(9, 10), (13, 13), (32, 32)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_schema::schema::NumberBound;

    #[test]
    fn prepared_lexemes_are_those_that_are_made() {
        for whitespace in [Whitespace::Compact, Whitespace::Bounded, Whitespace::Free] {
            for ascii in [false, true] {
                let options = SchemaOptions { whitespace, ascii, ..SchemaOptions::default() };
                let [mut prepared, mut made, mut used] = [0; 3].map(|_| Exprs::new(1 << 16));
                prepared.set_fuel(1 << 20);
                made.set_fuel(1 << 20);
                used.bytes(b"used").unwrap();
                let lexemes = Lexemes::new(&options, &mut prepared).unwrap();
                let parts = |lexemes: &Lexemes| {
                    let Lexemes { open, close, comma, colon, canonical, any, quote, loose, .. } = *lexemes;
                    [open, close, comma, colon, canonical, any, quote, loose]
                };
                assert_eq!(parts(&lexemes), parts(&Lexemes::made(&options, &mut made).unwrap()));
                assert_eq!((prepared.len(), prepared.fuel()), (made.len(), made.fuel()));
                let others = Lexemes::new(&options, &mut used).unwrap();
                for (one, other) in parts(&lexemes).into_iter().zip(parts(&others)) {
                    assert_eq!(prepared.structure(one), used.structure(other));
                }
                let mut poor = Exprs::new(1 << 16);
                poor.set_fuel(1);
                assert_eq!(Lexemes::new(&options, &mut poor).err().map(|e| e.kind), Some(ErrorKind::Limit));
            }
        }
    }

    /// A number of a sequence that is always the same (xorshift64).
    fn draw(state: &mut u64, below: u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % below
    }

    fn some_numbers(state: &mut u64, depth: u32) -> NumberFacts {
        let all = ["2", "3", "4.0", "5", "6", "7", "24", "0.5"];
        let mut divisors = || -> Vec<String> {
            let count = draw(state, 2);
            (0..count).map(|_| all[draw(state, all.len() as u64) as usize].into()).collect()
        };
        let (multiples, not_multiples) = (divisors(), divisors());
        let bound = |state: &mut u64| {
            (draw(state, 8) == 0).then(|| NumberBound {
                value: ["4", "12", "-6"][draw(state, 3) as usize].into(),
                exclusive: draw(state, 2) == 0,
            })
        };
        let (min, max) = (bound(state), bound(state));
        let mut choices = Vec::new();
        for _ in 0..if depth > 0 { 1 + draw(state, 2) } else { 0 } {
            let ways = 1 + draw(state, 3);
            let inner = if draw(state, 3) == 0 { depth - 1 } else { 0 };
            let way = |state: &mut u64| {
                let types =
                    [0, TypeSet::INTEGER.0, TypeSet::FRACTION.0, TypeSet::NUMBER.0][draw(state, 4) as usize];
                Arc::new(NumberFacts { types, ..some_numbers(state, inner) })
            };
            choices.push((0..ways).map(|_| way(state)).collect());
        }
        NumberFacts { min, max, multiples, not_multiples, choices, ..NumberFacts::default() }
    }

    #[test]
    fn simplified_choices_are_the_same_numbers() {
        let schema = super::super::super::load("true", &SchemaOptions::default(), &[]).unwrap();
        let forms = NormalForms::new(Arc::new(schema));
        let (mut state, mut simplified, mut empty) = (0x9e37_79b9_7f4a_7c15, 0, 0);
        for n in 0..200 {
            let facts = NumberFacts { digits_only: n % 8 != 0, ..some_numbers(&mut state, 2) };
            let types = [TypeSet::NUMBER, TypeSet::INTEGER, TypeSet::FRACTION][draw(&mut state, 3) as usize];
            if divisibility::simplified(&facts, types).is_none() {
                continue;
            }
            let mut exprs = Exprs::new(1 << 22);
            let mut lexemes = Lexemes::new(&SchemaOptions::default(), &mut exprs).unwrap();
            let made = lexemes.number(&forms, types, Some(&Arc::new(facts.clone())), &mut exprs).unwrap();
            let base = NumberFacts { choices: Vec::new(), ..facts.clone() };
            let mut all = vec![lexemes.number(&forms, types, Some(&Arc::new(base)), &mut exprs).unwrap()];
            for ways in &facts.choices {
                all.push(lexemes.choice(&forms, types, ways, &mut exprs).unwrap());
            }
            let naive = exprs.and(&all).unwrap();
            for (one, other) in [(made, naive), (naive, made)] {
                let not = exprs.not(other).unwrap();
                let only = exprs.and(&[one, not]).unwrap();
                assert!(!exprs.is_alive(only).unwrap(), "{facts:?} {types:?}");
            }
            simplified += 1;
            empty += usize::from(!exprs.is_alive(made).unwrap());
        }
        assert!(simplified > 100 && simplified - empty > 30, "{simplified}, {empty} of them empty");
    }
}
