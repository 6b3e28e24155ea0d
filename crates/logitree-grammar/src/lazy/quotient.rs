//! Left quotients of regular languages: what may follow a string.

use std::sync::Arc;

use super::super::{Dfa, Regex};

/// Every y such that `text` y is in `of`.
pub(super) fn after_text(of: &Regex, text: &str) -> Regex {
    text.chars().fold(of.clone(), |of, c| after(&of, c))
}

/// Every y such that `c` y is in `of`: the derivative (Brzozowski, Journal of the ACM 11, 1964).
fn after(of: &Regex, c: char) -> Regex {
    match of {
        Regex::Nothing | Regex::Empty => Regex::Nothing,
        Regex::Set(set) if set.contains(c) => Regex::Empty,
        Regex::Set(_) => Regex::Nothing,
        Regex::Text(text) => text.strip_prefix(c).map_or(Regex::Nothing, Regex::text),
        Regex::Concat(parts) => {
            let mut ways = Vec::new();
            for (place, part) in parts.iter().enumerate() {
                ways.push(then(after(part, c), &parts[place + 1..]));
                if !is_nullable(part) {
                    break;
                }
            }
            any(ways)
        }
        Regex::Or(parts) => any(parts.iter().map(|part| after(part, c)).collect()),
        Regex::And(parts) => Regex::And(parts.iter().map(|part| after(part, c)).collect()),
        Regex::Not(of) => after(of, c).not(),
        Regex::Repeat { max: Some(0), .. } => Regex::Nothing,
        Regex::Repeat { of, min, max } => {
            let rest = (**of).clone().repeat(min.saturating_sub(1), max.map(|max| max - 1));
            then(after(of, c), &[rest])
        }
        Regex::Automaton(dfa) => {
            let mut utf8 = [0; 4];
            let next =
                c.encode_utf8(&mut utf8).bytes().try_fold(Dfa::START, |state, byte| dfa.next(state, byte));
            next.map_or(Regex::Nothing, |state| Regex::Automaton(Arc::new(dfa.residual(state))))
        }
        Regex::Computed(dfa) => {
            let mut utf8 = [0; 4];
            let next =
                c.encode_utf8(&mut utf8).bytes().try_fold(dfa.start(), |state, byte| dfa.next(state, byte));
            next.map_or(Regex::Nothing, |state| Regex::Computed(Arc::new(dfa.residual(state))))
        }
    }
}

/// Whether the language contains the empty string.
pub(crate) fn is_nullable(of: &Regex) -> bool {
    match of {
        Regex::Nothing | Regex::Set(_) => false,
        Regex::Empty => true,
        Regex::Text(text) => text.is_empty(),
        Regex::Concat(parts) | Regex::And(parts) => parts.iter().all(is_nullable),
        Regex::Or(parts) => parts.iter().any(is_nullable),
        Regex::Not(of) => !is_nullable(of),
        Regex::Repeat { of, min, .. } => *min == 0 || is_nullable(of),
        Regex::Automaton(dfa) => dfa.is_accepting(Dfa::START),
        Regex::Computed(dfa) => dfa.is_accepting(dfa.start()),
    }
}

fn then(first: Regex, rest: &[Regex]) -> Regex {
    match first {
        Regex::Nothing => Regex::Nothing,
        Regex::Empty if rest.len() == 1 => rest[0].clone(),
        Regex::Empty => Regex::Concat(rest.to_vec()),
        first => Regex::concat([first].into_iter().chain(rest.iter().cloned())),
    }
}

fn any(mut ways: Vec<Regex>) -> Regex {
    ways.retain(|way| *way != Regex::Nothing);
    ways.dedup();
    match ways.len() {
        0 => Regex::Nothing,
        1 => ways.remove(0),
        _ => Regex::Or(ways),
    }
}
