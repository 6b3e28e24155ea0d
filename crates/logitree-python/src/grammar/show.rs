//! A grammar as the Python that builds it, for people: long texts and lists are cut.

use logitree::grammar::ast::{Grammar, NodeKind, Syntax};
use logitree::grammar::rules::TokenName;
use logitree::grammar::tags::Mark;

/// Characters of a text that are shown, parts of a list, and characters of the whole.
const TEXT: usize = 40;
const PARTS: usize = 6;
const WHOLE: usize = 400;

/// The grammar's `repr`.
pub fn show(part: &Grammar) -> String {
    let mut shown = Shown { out: String::new() };
    shown.part(part, false);
    shown.out
}

struct Shown {
    out: String,
}

impl Shown {
    /// Recursion is as deep as the text is long, at most.
    fn part(&mut self, part: &Grammar, joined: bool) {
        if self.out.len() > WHOLE {
            if !self.out.ends_with("...") {
                self.out.push_str("...");
            }
            return;
        }
        match part.kind() {
            NodeKind::Leaf(source, _) => self.out.push_str(&leaf(source)),
            NodeKind::Seq(parts) => self.list(parts, " + ", "Grammar.literal('')", joined),
            NodeKind::Alt(parts) => self.list(parts, " | ", "Grammar.choice([])", joined),
            NodeKind::Repeat { of, min, max } => {
                self.part(of, true);
                self.out.push_str(&match (min, max) {
                    (0, Some(1)) => ".optional()".to_string(),
                    (min, None) => format!(".repeat({min})"),
                    (min, Some(max)) => format!(".repeat({min}, {max})"),
                });
            }
            NodeKind::Recursive(body, _) => {
                self.out.push_str("Grammar.recursive(lambda me: ");
                self.part(body, false);
                self.out.push(')');
            }
            NodeKind::RuleRef(_) => self.out.push_str("me"),
        }
    }

    fn list(&mut self, parts: &[Grammar], between: &str, empty: &str, joined: bool) {
        if parts.is_empty() {
            return self.out.push_str(empty);
        }
        let wrapped = joined && parts.len() > 1;
        self.out.push_str(if wrapped { "(" } else { "" });
        for (at, part) in parts.iter().take(PARTS).enumerate() {
            self.out.push_str(if at > 0 { between } else { "" });
            self.part(part, true);
        }
        if parts.len() > PARTS {
            self.out.push_str(between);
            self.out.push_str("...");
        }
        self.out.push_str(if wrapped { ")" } else { "" });
    }
}

fn leaf(source: &Syntax) -> String {
    match source {
        Syntax::Regex(pattern) => format!("Grammar.regex({})", quoted(pattern)),
        Syntax::Gbnf { text, root } if root == "root" => format!("Grammar.gbnf({})", quoted(text)),
        Syntax::Gbnf { text, root } => format!("Grammar.gbnf({}, {})", quoted(text), quoted(root)),
        Syntax::Ebnf { text, root } if root == "root" => format!("Grammar.ebnf({})", quoted(text)),
        Syntax::Ebnf { text, root } => format!("Grammar.ebnf({}, {})", quoted(text), quoted(root)),
        Syntax::Lark { text, .. } => format!("Grammar.lark({})", quoted(text)),
        Syntax::JsonSchema { text, .. } => format!("Grammar.json_schema({})", quoted(text)),
        Syntax::Tags { tags, .. } => {
            let shown = tags.iter().take(PARTS).map(|tag| format!("({}, ...)", mark(&tag.begin)));
            let more = if tags.len() > PARTS { ", ..." } else { "" };
            format!("Grammar.tags([{}{more}])", shown.collect::<Vec<_>>().join(", "))
        }
        Syntax::StructuralTag(text) => format!("Grammar.structural_tag({})", quoted(text)),
        Syntax::Lazy { grammar, .. } => format!("Grammar.lazy({}, ...)", show(grammar)),
        Syntax::Literal(text) => format!("Grammar.literal({})", quoted(text)),
        Syntax::Choice(texts) => {
            let mut shown: Vec<String> = texts.iter().take(PARTS).map(|text| quoted(text)).collect();
            if texts.len() > PARTS {
                shown.push("...".into());
            }
            format!("Grammar.choice([{}])", shown.join(", "))
        }
        Syntax::Anything => "Grammar.text()".into(),
        Syntax::Token(name) => token(name),
    }
}

fn token(name: &TokenName) -> String {
    match name {
        TokenName::Id(id) => format!("Grammar.token({id})"),
        TokenName::Text(text) => format!("Grammar.token({})", quoted(text)),
    }
}

fn mark(mark: &Mark) -> String {
    match mark {
        Mark::Text(text) => quoted(text),
        Mark::Token(name) => token(name),
        Mark::Either(text) => format!("Grammar.token({0}) | {0}", quoted(text)),
    }
}

/// A text as Python writes it, cut.
fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(TEXT).collect();
    let more = if cut.len() < text.len() { "..." } else { "" };
    let escaped = format!("{cut:?}");
    let inner = escaped[1..escaped.len() - 1].replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{inner}{more}'")
}
