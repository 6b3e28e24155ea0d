//! The record of the steps: plain values, no policy.
