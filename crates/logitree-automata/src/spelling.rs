//! Finds the name that a misspelt one probably meant.

/// The name that `wrong` probably meant, as help: `did you mean "x"?`.
pub fn did_you_mean<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let near = |name: &&str| name.len().abs_diff(wrong.len()) <= 2 && name.len() <= 64 && wrong.len() <= 64;
    let (distance, name) = names.take(1000).filter(near).map(|name| (distance(wrong, name), name)).min()?;
    let close = distance <= 1 || (distance == 2 && wrong.len() > 4);
    close.then(|| format!("did you mean \"{name}\"?"))
}

/// The edit distance; case is ignored.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase().into_bytes(), b.to_ascii_lowercase().into_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_close() {
        let names = ["value", "object"];
        assert_eq!(did_you_mean("Value", names.into_iter()).as_deref(), Some("did you mean \"value\"?"));
        assert_eq!(did_you_mean("ojbect", names.into_iter()).as_deref(), Some("did you mean \"object\"?"));
        assert_eq!(did_you_mean("string", names.into_iter()), None);
    }
}
