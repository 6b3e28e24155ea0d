//! Parses tokens into items, and continues after a broken item.

use super::super::problems::{excerpt, Problems};
use super::ast::{Alternative, Attributes, Choice, Expr, Item, RuleItem, Value};
use super::lexer::{Kind, Token};
use super::strings;

/// Maximum nesting of groups: the parser and later passes recurse.
const MAX_NESTED: usize = 100;

/// The items of `tokens`.
pub(super) fn items<'t>(text: &'t str, tokens: &[Token], problems: &mut Problems) -> Vec<Item<'t>> {
    let mut parser = Parser { text, tokens, next: 0, nested: 0, groups: 0, problems };
    parser.all(false)
}

pub(super) struct Parser<'t, 'p> {
    pub(super) text: &'t str,
    pub(super) tokens: &'p [Token],
    pub(super) next: usize,
    /// The current nesting of groups and grammars.
    nested: usize,
    /// How many groups of this item are open, itself included.
    groups: usize,
    pub(super) problems: &'p mut Problems,
}

/// A parsed value, or `None` if the problem is reported.
pub(super) type Read<T> = Option<T>;

impl<'t> Parser<'t, '_> {
    pub(super) fn peek(&self) -> Token {
        self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    pub(super) fn kind(&self) -> Kind {
        self.peek().kind
    }

    pub(super) fn at(&self) -> usize {
        self.peek().at as usize
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// The text of a token.
    pub(super) fn said(&self, token: Token) -> &'t str {
        &self.text[token.at as usize..token.end as usize]
    }

    pub(super) fn eat(&mut self, sign: u8) -> bool {
        let found = self.kind() == Kind::Sign(sign);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: u8, after: &str) -> Read<()> {
        if self.eat(sign) {
            return Some(());
        }
        self.unexpected(&format!("`{}` must follow {after}", char::from(sign)), "")
    }

    /// Reports what is missing here; a broken token was reported by the lexer.
    pub(super) fn unexpected<T>(&mut self, missing: &str, help: &str) -> Read<T> {
        if self.kind() != Kind::Broken {
            let found = excerpt(self.text, self.at());
            self.problems.add(self.at(), format!("{missing}, not {found}"), help);
        }
        None
    }

    fn skip_newlines(&mut self) {
        while self.kind() == Kind::Newline {
            self.next += 1;
        }
    }

    /// All items up to the end, or up to the closing brace `inside` a nested grammar.
    fn all(&mut self, inside: bool) -> Vec<Item<'t>> {
        let mut items = Vec::new();
        let nested = self.nested;
        loop {
            (self.nested, self.groups) = (nested, 0); // a broken item leaves its groups open
            self.skip_newlines();
            if self.kind() == Kind::End
                || (inside && self.kind() == Kind::Sign(b'}'))
                || self.problems.is_full()
            {
                return items;
            }
            let first = self.peek();
            if self.item(&mut items).is_none() {
                if matches!(first.kind, Kind::Rule | Kind::Terminal) {
                    items.push(Item::Broken(self.said(first).trim_start_matches(['!', '?'])));
                }
                self.recover();
            } else if !self.item_ends(inside) {
                let _: Read<()> =
                    self.unexpected("a line must end here", "put each rule in lines of its own");
                self.recover();
            }
        }
    }

    /// Whether an item may end here.
    fn item_ends(&self, inside: bool) -> bool {
        matches!(self.kind(), Kind::Newline | Kind::End) || inside && self.kind() == Kind::Sign(b'}')
    }

    /// Skips to the next line that starts an item.
    fn recover(&mut self) {
        self.next = self.next.saturating_sub(1);
        loop {
            match self.advance().kind {
                Kind::End => {
                    self.next = self.tokens.len() - 1;
                    return;
                }
                Kind::Newline if self.starts_item(self.next) => return,
                _ => {}
            }
        }
    }

    /// Whether the token with this number starts an item.
    fn starts_item(&self, number: usize) -> bool {
        let kind = |number: usize| self.tokens.get(number).map_or(Kind::End, |token| token.kind);
        match kind(number) {
            Kind::Rule | Kind::Terminal => {
                matches!(kind(number + 1), Kind::Sign(b':' | b'[' | b'.' | b'{' | b'P'))
            }
            Kind::Directive => true,
            _ => false,
        }
    }

    fn item(&mut self, items: &mut Vec<Item<'t>>) -> Read<()> {
        let token = self.advance();
        let name = self.said(token);
        match token.kind {
            Kind::Rule => {
                let name = name.trim_start_matches(['!', '?']);
                let rule = self.rule(name, token.at as usize)?;
                items.push(Item::Rule(rule));
            }
            Kind::Terminal => {
                self.no_template(name)?;
                if self.kind() == Kind::Sign(b'.') {
                    let help =
                        "every reading is kept; take out of one terminal what the other is for: A & ~B";
                    self.problems.add(self.at(), format!("the terminal {name} has a priority"), help);
                    self.next += 2;
                }
                self.expect(b':', "a terminal's name")?;
                items.push(Item::Terminal { name, at: token.at as usize, body: self.choice()? });
            }
            Kind::Directive => self.directive(name, token.at as usize, items)?,
            _ => {
                self.next -= 1;
                return self.unexpected(
                    "a rule, a terminal or a directive must start here",
                    "a rule is name: definition",
                );
            }
        }
        Some(())
    }

    fn no_template(&mut self, name: &str) -> Read<()> {
        match self.kind() {
            Kind::Sign(b'{') => {
                let message = format!("\"{name}\" has parameters: templates are not read");
                self.problems.add(self.at(), message, "write the rule out for each use");
                None
            }
            Kind::Sign(b'P') => {
                let message = format!("\"{name}\" has a parameter, and is a terminal");
                self.problems.add(self.at(), message, "rules with a parameter are named in lower case");
                None
            }
            _ => Some(()),
        }
    }

    /// A rule after its name.
    fn rule(&mut self, name: &'t str, at: usize) -> Read<RuleItem<'t>> {
        let is_parametric = self.eat(b'P');
        if is_parametric {
            self.expect(b'_', "`::` in a definition")?;
        }
        self.no_template(name)?;
        if self.eat(b'.') && self.kind() == Kind::Number {
            self.next += 1; // a rule's priority chooses among readings, and all are kept
        }
        let attributes = if self.eat(b'[') { self.attributes()? } else { Attributes::default() };
        self.expect(b':', "a rule's name")?;
        Some(RuleItem { name, at, is_parametric, body: self.choice()?, attributes })
    }

    fn directive(&mut self, word: &str, at: usize, items: &mut Vec<Item<'t>>) -> Read<()> {
        match word {
            "%ignore" => items.push(Item::Ignore(self.choice()?)),
            "%import" => self.import(items)?,
            "%llguidance" => {
                if self.kind() != Kind::Json {
                    return None;
                }
                let json = self.advance();
                items.push(Item::Options { json: self.said(json), at });
            }
            "%override" | "%extend" | "%declare" => {
                self.problems.add(at, format!("{word} is not read"), "write the rule itself");
                return None;
            }
            _ => {
                let help = "at the start of a line there are %ignore, %import and %llguidance";
                self.problems.add(at, format!("{word} cannot stand here"), help);
                return None;
            }
        }
        Some(())
    }

    /// `common.WS`, `common.WS -> BLANKS`, `common (WS, INT)`.
    fn import(&mut self, items: &mut Vec<Item<'t>>) -> Read<()> {
        let first = self.advance();
        let mut path = first.at as usize..first.end as usize;
        if !matches!(first.kind, Kind::Rule | Kind::Terminal) {
            self.next -= 1;
            return self.unexpected("a library must follow %import", "write %import common.NAME");
        }
        let mut last = None;
        while self.eat(b'.') {
            if let Some(token) = last.replace(self.advance()) {
                path.end = token.end as usize;
            }
        }
        let path = &self.text[path];
        if let Some(token) = last {
            let (name, at) = (self.said(token), token.at as usize);
            let alias = if self.eat(b'>') { self.advance() } else { token };
            items.push(Item::Import { path, name, alias: self.said(alias), at });
            return Some(());
        }
        self.expect(b'(', "a library's name")?;
        loop {
            let token = self.advance();
            let (name, at) = (self.said(token), token.at as usize);
            items.push(Item::Import { path, name, alias: name, at });
            if !self.eat(b',') {
                return self.expect(b')', "the names");
            }
        }
    }

    /// Alternatives. Lines that start with `|` continue them; inside groups all lines do.
    fn choice(&mut self) -> Read<Choice<'t>> {
        let at = self.at();
        if self.nested == MAX_NESTED {
            let message = format!("groups nest more than {MAX_NESTED} deep");
            self.problems.add(at, message, "give parts names");
            return None;
        }
        self.nested += 1;
        self.groups += 1;
        let mut alternatives = Vec::new();
        loop {
            alternatives.push(self.alternative()?);
            let before = self.next;
            self.skip_newlines();
            if !self.eat(b'|') {
                self.next = before;
                break;
            }
        }
        self.nested -= 1;
        self.groups -= 1;
        Some(Choice { at, alternatives })
    }

    fn alternative(&mut self) -> Read<Alternative<'t>> {
        let mut all = vec![self.sequence()?];
        while self.eat(b'&') {
            all.push(self.sequence()?);
        }
        if self.eat(b'>') {
            if self.kind() != Kind::Rule {
                return self.unexpected("a name must follow `->`", "it is written in lower case");
            }
            self.next += 1; // a name for a tree's node
        }
        let at = self.at();
        let condition = match self.kind() == Kind::Directive && self.said(self.peek()) == "%if" {
            true => {
                self.advance();
                Some((self.condition(0)?, at))
            }
            false => None,
        };
        Some(Alternative { all, condition })
    }

    fn sequence(&mut self) -> Read<Vec<Expr<'t>>> {
        let mut parts = Vec::new();
        loop {
            match self.kind() {
                Kind::Newline if self.goes_on() => self.skip_newlines(),
                Kind::Newline | Kind::End | Kind::Sign(b'|' | b')' | b']' | b'}' | b'&' | b'>') => {
                    return Some(parts)
                }
                Kind::Directive if self.said(self.peek()) == "%if" => return Some(parts),
                _ => parts.push(self.part()?),
            }
        }
    }

    /// Whether line ends are insignificant inside a group: not before an item, where the group was left open.
    fn goes_on(&self) -> bool {
        let lines = self.tokens[self.next..].iter().take_while(|token| token.kind == Kind::Newline).count();
        let next = self.next + lines;
        let named = matches!(self.tokens[next].kind, Kind::Rule | Kind::Terminal);
        let defines =
            matches!(self.tokens.get(next + 1).map(|token| token.kind), Some(Kind::Sign(b':' | b'P')));
        self.groups > 1 && !(named && defines)
    }

    fn part(&mut self) -> Read<Expr<'t>> {
        let at = self.at();
        let mut negated = false;
        while self.eat(b'~') {
            negated = !negated;
        }
        let value = self.value()?;
        let times = self.times()?;
        Some(Expr { at, value, negated, times })
    }

    fn times(&mut self) -> Read<Option<(u32, Option<u32>)>> {
        let at = self.at();
        let after = self.tokens.get(self.next + 1).map(|token| token.kind);
        let times = match self.kind() {
            Kind::Sign(b'*') => (0, None),
            Kind::Sign(b'+') => (1, None),
            Kind::Sign(b'?') => (0, Some(1)),
            Kind::Sign(b'~') if after == Some(Kind::Number) => {
                self.next += 1;
                let min = self.number()?;
                let max = if self.eat(b'D') { self.number()? } else { min };
                self.next -= 1;
                (min, Some(max))
            }
            Kind::Sign(b'{') => {
                self.next += 1;
                let min = if self.kind() == Kind::Sign(b',') { 0 } else { self.number()? };
                let max = match self.eat(b',') {
                    true if self.kind() == Kind::Sign(b'}') => None,
                    true => Some(self.number()?),
                    false => Some(min),
                };
                if self.kind() != Kind::Sign(b'}') {
                    return self.unexpected("a repetition must end here", "it is {m}, {m,}, {,n} or {m,n}");
                }
                (min, max)
            }
            _ => return Some(None),
        };
        self.next += 1;
        if times.1.is_some_and(|max| max < times.0) {
            self.problems.add(at, "a repetition whose most is less than its least", "turn the numbers round");
        }
        Some(Some(times))
    }

    fn number(&mut self) -> Read<u32> {
        if self.kind() != Kind::Number {
            return self.unexpected("a number must follow", "");
        }
        let token = self.advance();
        let said = self.said(token);
        let number = said.strip_prefix('+').unwrap_or(said).parse().ok();
        if number.is_none() {
            let message = format!("`{said}` is no count");
            self.problems.add(
                token.at as usize,
                message,
                format!("a count is a number from 0 to {}", u32::MAX),
            );
        }
        number
    }

    pub(super) fn value(&mut self) -> Read<Value<'t>> {
        let token = self.advance();
        let (said, at) = (self.said(token), token.at as usize);
        Some(match token.kind {
            Kind::Rule | Kind::Terminal => {
                if token.kind == Kind::Rule && self.eat(b'P') {
                    return Some(Value::Instance(said.trim_start_matches(['!', '?']), self.parameter()?));
                }
                if self.kind() == Kind::Sign(b'P') || self.is_template_use() {
                    return self.no_template(said).map(|()| Value::Name(said));
                }
                Value::Name(said.trim_start_matches(['!', '?']))
            }
            Kind::Text => {
                let (text, fold) = strings::text(said, at, self.problems);
                if self.eat(b'D') {
                    return self.range((&text, fold), at);
                }
                Value::Text { text: text.into(), fold }
            }
            Kind::Pattern => {
                let close = said.rfind('/').unwrap_or(0);
                Value::Pattern { pattern: &said[1..close], flags: &said[close + 1..] }
            }
            Kind::Token => Value::Token(said),
            Kind::Sign(b'!') if self.kind() == Kind::Token => {
                let inner = self.advance();
                Value::Token(&self.text[at..inner.end as usize])
            }
            Kind::Grammar => Value::Grammar(&said[1..]),
            Kind::Sign(b'(') => {
                let group = self.choice()?;
                self.close(b')', at)?;
                Value::Group(group)
            }
            Kind::Sign(b'[') => {
                let group = self.choice()?;
                self.close(b']', at)?;
                Value::Optional(group)
            }
            Kind::Directive => self.inline(said, at)?,
            _ => {
                self.next -= 1;
                return self.unexpected("a name, a text, a regular expression or a group must come here", "");
            }
        })
    }

    /// Whether `{` opens parameters rather than a count.
    fn is_template_use(&self) -> bool {
        let after = self.tokens.get(self.next + 1).map(|token| token.kind);
        self.kind() == Kind::Sign(b'{') && !matches!(after, Some(Kind::Number | Kind::Sign(b',')))
    }

    fn close(&mut self, sign: u8, open: usize) -> Read<()> {
        self.skip_newlines();
        if self.eat(sign) {
            return Some(());
        }
        if self.kind() != Kind::Broken {
            let message = "a group that is not closed";
            self.problems.add(open, message, format!("close it with {}", char::from(sign)));
        }
        None
    }

    /// `"a".."z"` after its `..`.
    fn range(&mut self, (from, fold): (&str, bool), at: usize) -> Read<Value<'t>> {
        if self.kind() != Kind::Text {
            return self.unexpected("a character must follow `..`", "a range is \"a\"..\"z\"");
        }
        let token = self.advance();
        let (to, also) = strings::text(self.said(token), token.at as usize, self.problems);
        if fold || also {
            self.problems.add(at, "a range has no flags", "write both ranges, or a pattern: /[a-z]/i");
            return None;
        }
        let (mut first, mut last) = (from.chars(), to.chars());
        match (first.next(), first.next(), last.next(), last.next()) {
            (Some(from), None, Some(to), None) if from <= to => Some(Value::Range(from, to)),
            (Some(_), None, Some(_), None) => {
                self.problems.add(at, "a range that runs from back to front", "turn it round");
                None
            }
            _ => {
                self.problems.add(at, "a range needs one character on each side", "write \"a\"..\"z\"");
                None
            }
        }
    }

    /// The meaning of a directive inside a rule.
    fn inline(&mut self, word: &str, at: usize) -> Read<Value<'t>> {
        match (word, self.kind()) {
            ("%json", Kind::Json) => {
                let json = self.advance();
                Some(Value::Json(self.said(json).trim()))
            }
            ("%regex", Kind::Json) => {
                let json = self.advance();
                Some(Value::Structured(self.said(json)))
            }
            ("%json" | "%regex", _) => None,
            ("%lark", _) => {
                self.expect(b'{', "%lark")?;
                if self.nested == MAX_NESTED {
                    self.problems.add(
                        at,
                        "grammars nest too deep",
                        "give them names and refer to them by @name",
                    );
                    return None;
                }
                let (nested, groups) = (self.nested, self.groups);
                self.nested += 1;
                let items = self.all(true);
                (self.nested, self.groups) = (nested, groups);
                self.close(b'}', at)?;
                Some(Value::Nested(items))
            }
            _ => {
                let help = "inside of rules there are %json, %regex and %lark";
                self.problems.add(at, format!("{word} cannot stand here"), help);
                None
            }
        }
    }
}
