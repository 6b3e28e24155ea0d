//! Constraints and their matchers: the laws, and each kind against its naive version.

mod binding;
mod canonical;
mod certain;
mod compose;
mod ending;
mod form;
mod intersection;
mod kinds;
mod laws;
mod own;
mod reasoning;
mod reasoning_corpus;
mod recogniser;
mod skeleton;
mod token_tree;
