//! Reads Lark's token sets: `<name>`, `<[7]>`, `<[1-5,9]>`, `<[^7]>`, `<[*]>`; with `!` every token except
//! those.

use super::super::problems::Problems;
use super::super::rules::{TokenName, TokenNames};

/// Maximum number of ids a set may list: more than any vocabulary has.
const MAX_LISTED: u64 = 1 << 20;

/// The set that `said`, at the byte offset `at`, names.
pub(super) fn set(said: &str, at: usize, problems: &mut Problems) -> TokenNames {
    let negated = said.starts_with('!');
    let name = said.trim_start_matches('!');
    let Some(list) = name.strip_prefix("<[").and_then(|rest| rest.strip_suffix("]>")) else {
        return TokenNames { tokens: vec![TokenName::Text(name.into())], negated };
    };
    let (list, inverted) = list.strip_prefix('^').map_or((list, false), |rest| (rest, true));
    if list == "*" && !inverted {
        // Every token: nothing is excluded.
        return TokenNames { tokens: Vec::new(), negated: !negated };
    }
    let ids = numbers(list).unwrap_or_else(|why| {
        problems.add(
            at,
            format!("`{said}` names no tokens: {why}"),
            "write <[7]>, <[1-5,9]>, <[^7]> or <[*]>",
        );
        Vec::new()
    });
    TokenNames { tokens: ids.into_iter().map(TokenName::Id).collect(), negated: negated != inverted }
}

/// The ids of a list of ids and ranges.
fn numbers(list: &str) -> Result<Vec<u32>, String> {
    let mut ranges = Vec::new();
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let read = |number: &str| {
            let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            digits
                .then(|| number.parse::<u32>().ok())
                .flatten()
                .ok_or(format!("`{number}` is no number of a token"))
        };
        let (from, to) = (read(from)?, read(to)?);
        if to < from {
            return Err(format!("`{part}` runs from back to front"));
        }
        ranges.push((from, to));
    }
    if ranges.is_empty() {
        return Err("the list is empty".into());
    }
    let count: u64 = ranges.iter().map(|&(from, to)| u64::from(to - from) + 1).sum();
    if count > MAX_LISTED {
        return Err(format!("it lists {count} numbers, more than {MAX_LISTED}"));
    }
    let mut ids: Vec<u32> = ranges.into_iter().flat_map(|(from, to)| from..=to).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}
