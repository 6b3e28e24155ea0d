//! The hallway: matcher + chain + history + metrics for one sequence.
