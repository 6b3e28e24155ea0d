//! Sorting of keys. The file refuses to know what a key is made of.

/// Sorts `keys` ascending, as `sort_unstable` does. `scratch` is overwritten.
pub fn sort_keys(keys: &mut Vec<u64>, scratch: &mut Vec<u64>) {
    scratch.clear();
    keys.sort_unstable();
}
