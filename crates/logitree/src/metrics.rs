//! Plain measures of a distribution: surprisal, entropy, perplexity, top candidates.
