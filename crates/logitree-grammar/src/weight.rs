//! How large a regular language is as plain data.

use super::Regex;

/// About how much memory and work the language takes, in nodes, and how deep it nests. Recursive: its maker bounds the depth.
pub(crate) fn weight(regex: &Regex) -> (usize, usize) {
    let all = |parts: &[Regex]| {
        parts.iter().map(weight).fold((1, 1), |(weight, depth), (w, d)| (weight + w, depth.max(d + 1)))
    };
    match regex {
        Regex::Nothing | Regex::Empty | Regex::Computed(_) => (1, 1),
        Regex::Set(set) => (1 + set.ranges().len() / 8, 1),
        Regex::Text(text) => (1 + text.len() / 16, 1),
        Regex::Concat(parts) | Regex::Or(parts) | Regex::And(parts) => all(parts),
        Regex::Automaton(dfa) => (1 + dfa.len(), 1),
        Regex::Not(of) | Regex::Repeat { of, .. } => all(std::slice::from_ref(of)),
    }
}
