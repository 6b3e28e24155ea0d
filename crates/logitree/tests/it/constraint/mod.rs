mod intersection;
mod laws;
mod reasoning;
mod reasoning_corpus;
mod token_tree;
