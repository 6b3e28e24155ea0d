//! Regular languages of a few texts, listed. It refuses to look far: what is not plainly small is taken as endless.

use super::super::super::Regex;

/// Texts at most.
const MOST_TEXTS: usize = 64;

/// The texts of `regex` in an order without meaning, if they are plainly few.
pub(super) fn texts_of(regex: &Regex) -> Option<Vec<String>> {
    let mut texts = listed(regex, 16)?;
    texts.sort_unstable();
    texts.dedup();
    Some(texts)
}

fn listed(regex: &Regex, depth: u32) -> Option<Vec<String>> {
    let depth = depth.checked_sub(1)?;
    match regex {
        Regex::Nothing => Some(Vec::new()),
        Regex::Empty => Some(vec![String::new()]),
        Regex::Text(text) => Some(vec![text.clone()]),
        Regex::Set(set) if set.len() <= MOST_TEXTS => {
            let codes = set.ranges().iter().flat_map(|&(from, to)| from..=to);
            Some(codes.filter_map(char::from_u32).map(String::from).collect())
        }
        Regex::Concat(parts) => {
            let mut texts = vec![String::new()];
            for part in parts {
                texts = joined(&texts, &listed(part, depth)?)?;
            }
            Some(texts)
        }
        Regex::Or(parts) => {
            let mut texts = Vec::new();
            for part in parts {
                texts.extend(listed(part, depth)?);
                if texts.len() > MOST_TEXTS {
                    return None;
                }
            }
            Some(texts)
        }
        Regex::Repeat { of, min, max: Some(max) } if *max <= 8 => {
            let of = listed(of, depth)?;
            let (mut texts, mut power) = (Vec::new(), vec![String::new()]);
            for times in 0..=*max {
                if times >= *min {
                    texts.extend(power.iter().cloned());
                }
                if times < *max {
                    power = joined(&power, &of)?;
                }
            }
            (texts.len() <= MOST_TEXTS).then_some(texts)
        }
        _ => None,
    }
}

fn joined(left: &[String], right: &[String]) -> Option<Vec<String>> {
    if left.len() * right.len() > MOST_TEXTS {
        return None;
    }
    Some(left.iter().flat_map(|a| right.iter().map(move |b| format!("{a}{b}"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_languages_are_listed() {
        let regex = Regex::concat([Regex::text("x"), Regex::range('a', 'c').optional()]);
        assert_eq!(texts_of(&regex).unwrap(), ["x", "xa", "xb", "xc"]);
        assert_eq!(texts_of(&Regex::anything()), None);
        assert_eq!(texts_of(&Regex::range('a', 'z').repeat(0, Some(3))), None);
        assert_eq!(texts_of(&Regex::Nothing), Some(Vec::new()));
    }
}
