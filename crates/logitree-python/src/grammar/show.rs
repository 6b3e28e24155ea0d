//! A grammar as the Python that builds it, for people: long texts and lists are cut. It refuses to know rules.

use logitree::grammar::ast::{Part, Source, What};
use logitree::grammar::rules::TokenName;
use logitree::grammar::tags::Mark;

/// Characters of a text that are shown, parts of a list, and characters of the whole.
const TEXT: usize = 40;
const PARTS: usize = 6;
const WHOLE: usize = 400;

/// The grammar's `repr`.
pub fn show(part: &Part) -> String {
    let mut shown = Shown { out: String::new() };
    shown.part(part, false);
    shown.out
}

struct Shown {
    out: String,
}

impl Shown {
    /// Recursion is as deep as the text is long, at most.
    fn part(&mut self, part: &Part, joined: bool) {
        if self.out.len() > WHOLE {
            if !self.out.ends_with("...") {
                self.out.push_str("...");
            }
            return;
        }
        match part.what() {
            What::Leaf(source, _) => self.out.push_str(&leaf(source)),
            What::Seq(parts) => self.list(parts, " + ", "Grammar.literal('')", joined),
            What::Alt(parts) => self.list(parts, " | ", "Grammar.choice([])", joined),
            What::Repeat { of, min, max } => {
                self.part(of, true);
                self.out.push_str(&match (min, max) {
                    (0, Some(1)) => ".optional()".to_string(),
                    (min, None) => format!(".repeat({min})"),
                    (min, Some(max)) => format!(".repeat({min}, {max})"),
                });
            }
            What::Recursive(body, _) => {
                self.out.push_str("Grammar.recursive(lambda me: ");
                self.part(body, false);
                self.out.push(')');
            }
            What::Me(_) => self.out.push_str("me"),
        }
    }

    fn list(&mut self, parts: &[Part], between: &str, empty: &str, joined: bool) {
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

fn leaf(source: &Source) -> String {
    match source {
        Source::Regex(pattern) => format!("Grammar.regex({})", quoted(pattern)),
        Source::Gbnf { text, root } if root == "root" => format!("Grammar.gbnf({})", quoted(text)),
        Source::Gbnf { text, root } => format!("Grammar.gbnf({}, {})", quoted(text), quoted(root)),
        Source::Lark { text, .. } => format!("Grammar.lark({})", quoted(text)),
        Source::JsonSchema { text, .. } => format!("Grammar.json_schema({})", quoted(text)),
        Source::Tags { tags, .. } => {
            let shown = tags.iter().take(PARTS).map(|tag| format!("({}, ...)", mark(&tag.begin)));
            let more = if tags.len() > PARTS { ", ..." } else { "" };
            format!("Grammar.tags([{}{more}])", shown.collect::<Vec<_>>().join(", "))
        }
        Source::StructuralTag(text) => format!("Grammar.structural_tag({})", quoted(text)),
        Source::Lazy { grammar, .. } => format!("Grammar.lazy({}, ...)", show(grammar)),
        Source::Literal(text) => format!("Grammar.literal({})", quoted(text)),
        Source::Choice(texts) => {
            let mut shown: Vec<String> = texts.iter().take(PARTS).map(|text| quoted(text)).collect();
            if texts.len() > PARTS {
                shown.push("...".into());
            }
            format!("Grammar.choice([{}])", shown.join(", "))
        }
        Source::Anything => "Grammar.text()".into(),
        Source::Token(name) => token(name),
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
