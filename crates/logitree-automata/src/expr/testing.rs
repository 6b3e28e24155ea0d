//! Compiles patterns and lists texts, for the tests of expressions.

use super::{Encoding, ExprId, Exprs};
use crate::pattern;

/// The language of the pattern `text`.
pub(super) fn compiled(exprs: &mut Exprs, text: &str) -> ExprId {
    let regex = pattern::parse(text, &pattern::PatternOptions::WHOLE).unwrap();
    exprs.compile(&regex, Encoding::Utf8).unwrap()
}

/// All texts of up to `most` of these bytes.
pub(super) fn texts(bytes: &[u8], most: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut at = 0;
    while at < all.len() {
        if all[at].len() < most {
            let longer: Vec<Vec<u8>> = bytes.iter().map(|&byte| [&all[at][..], &[byte]].concat()).collect();
            all.extend(longer);
        }
        at += 1;
    }
    all
}
