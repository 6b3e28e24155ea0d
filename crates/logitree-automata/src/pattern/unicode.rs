//! Unicode properties and simple case folding as character sets, from the tables of the `regex-syntax` crate.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::CharSet;

/// The set of a property as written in the braces of `\p{..}`: `L`, `Letter`, `Greek`, `Script=Greek`,
/// `sc=Grek`, `gc=Lu`, `Alphabetic`. Names are matched loosely. `None` if there is no such property.
pub fn property(name: &str) -> Option<CharSet> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '=' | '-' | ' ');
    if name.is_empty() || !name.chars().all(fine) {
        return None;
    }
    let hir = regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(from_class(&class)),
        HirKind::Class(Class::Bytes(class)) => Some(CharSet::from_ranges(
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())),
        )),
        HirKind::Literal(text) => {
            let text = std::str::from_utf8(&text.0).ok()?;
            Some(CharSet::from_ranges(text.chars().map(|c| (c.into(), c.into()))))
        }
        _ => None,
    }
}

/// The set with all case variants of its characters.
pub fn fold(set: &CharSet) -> CharSet {
    let ranges = set
        .ranges()
        .iter()
        .filter_map(|&(from, to)| Some(ClassUnicodeRange::new(char::from_u32(from)?, char::from_u32(to)?)));
    let mut class = ClassUnicode::new(ranges);
    match class.try_case_fold_simple() {
        Ok(()) => from_class(&class),
        Err(_) => set.clone(),
    }
}

fn from_class(class: &ClassUnicode) -> CharSet {
    CharSet::from_ranges(class.ranges().iter().map(|range| (range.start().into(), range.end().into())))
}
