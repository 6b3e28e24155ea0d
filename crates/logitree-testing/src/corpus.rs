//! Reads the corpora of `testdata`, and finds the shared data that some tests need.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// A path in `testdata`.
pub fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// A file of `testdata`.
pub fn read<T: DeserializeOwned>(path: &str) -> T {
    read_file(&testdata(path))
}

/// All files of a folder of `testdata`, by name.
pub fn read_all<T: DeserializeOwned>(folder: &str) -> Vec<(String, T)> {
    let files = files(folder).into_iter();
    files.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), read_file(&path))).collect()
}

/// The paths of all files of a folder of `testdata`, in order.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(testdata(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn read_file<T: DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
