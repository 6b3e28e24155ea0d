//! Sampling: the chain of samplers with llama.cpp's names, formulas and order. Filled in by its own change.
