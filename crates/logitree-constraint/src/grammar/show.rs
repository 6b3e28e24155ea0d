//! Sets of bytes as people read them.

use logitree_grammar::expr::ByteSet;

/// More runs of bytes say nothing to anybody.
const MAX_RUNS: usize = 6;

/// The bytes of a set, runs of them as ranges; `None` if there are none, or too many apart.
pub(super) fn few(bytes: &ByteSet) -> Option<String> {
    let all: Vec<u8> = bytes.iter().collect();
    let runs: Vec<&[u8]> = all.chunk_by(|a, b| a + 1 == *b).collect();
    let (first, last) = (all.first()?, all.last()?);
    let is_text = *first >= b'\t' && *last < 0x7f;
    if runs.len() > MAX_RUNS || !is_text {
        return None;
    }
    let shown: Vec<String> = runs.iter().flat_map(|run| in_words(run)).collect();
    match shown.split_last() {
        Some((last, [])) => Some(last.clone()),
        Some((last, before)) => Some(format!("{} or {last}", before.join(", "))),
        None => None,
    }
}

/// A run: byte by byte where it is short.
fn in_words(run: &[u8]) -> Vec<String> {
    let one = |byte: u8| format!("{:?}", char::from(byte).to_string());
    match run {
        [from, _, .., to] => vec![format!("{} to {}", one(*from), one(*to))],
        _ => run.iter().map(|&byte| one(byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_runs() {
        let set = |bytes: &[u8]| {
            let mut set = ByteSet::NONE;
            bytes.iter().for_each(|&byte| set.insert(byte));
            few(&set)
        };
        assert_eq!(set(b"x").unwrap(), r#""x""#);
        assert_eq!(set(b"ab-\"").unwrap(), r#""\"", "-", "a" or "b""#);
        assert_eq!(set(b"0123\n").unwrap(), r#""\n" or "0" to "3""#);
        assert_eq!(set(b""), None);
        assert_eq!(set(b"acegikmo"), None);
        assert_eq!(set(b"a\xc3"), None);
    }
}
