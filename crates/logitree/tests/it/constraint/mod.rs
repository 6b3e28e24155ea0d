mod intersection;
mod laws;
mod thought;
mod thought_corpus;
mod token_tree;
