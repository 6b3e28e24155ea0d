//! The plain version of every kernel: what the others must equal.

pub(super) fn count(words: &[u32]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// `banned` wherever the bit is 0; the rest is not written.
pub(super) fn ban<T: Copy>(words: &[u32], logits: &mut [T], banned: T) {
    for (word, logits) in words.iter().zip(logits.chunks_mut(32)) {
        if *word == u32::MAX {
            continue;
        }
        for (bit, logit) in logits.iter_mut().enumerate() {
            if word >> bit & 1 == 0 {
                *logit = banned;
            }
        }
    }
}
