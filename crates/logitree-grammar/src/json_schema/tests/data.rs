//! The test data: MaskBench and the JSON-Schema-Test-Suite, unpacked from their archives.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::json_schema::Draft;
use serde_json::Value;

/// The drafts and their folders in the suite.
pub const DRAFTS: [(&str, Draft); 5] = [
    ("draft4", Draft::Draft4),
    ("draft6", Draft::Draft6),
    ("draft7", Draft::Draft7),
    ("draft2019-09", Draft::Draft2019),
    ("draft2020-12", Draft::Draft2020),
];

/// The JSON Schema Test Suite.
pub struct Suite {
    pub tests: PathBuf,
    /// The documents that its schemas refer to, by URI.
    pub remotes: Vec<(String, String)>,
}

/// The suite, if its data is there.
pub fn suite() -> Option<Suite> {
    let folder = unpacked("json-schema-test-suite")?;
    let root = folder.join("remotes");
    let named = |path: &PathBuf| {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        (format!("http://localhost:1234/{name}"), std::fs::read_to_string(path).unwrap())
    };
    Some(Suite { tests: folder.join("tests"), remotes: files(&root).iter().map(named).collect() })
}

/// A data archive, unpacked beside the build once; `None`, with the reason printed, if that is not possible.
///
/// Names of tests that need it end with `with_the_data`: `make test-data` selects them so.
pub fn unpacked(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var("LOGITREE_DATA").unwrap_or_else(|_| beside.into());
    let tarball = Path::new(&folder).join(format!("{name}.tar.xz"));
    if !tarball.exists() {
        eprintln!("skipped: {} is absent, set LOGITREE_DATA to the data folder", tarball.display());
        return None;
    }
    let target = target_folder().join("read").join(name);
    if target.exists() {
        return Some(target);
    }
    // Tests run at once: each unpacks for itself, and the first one to be ready puts it in its place.
    let own = tempfile_beside(&target);
    std::fs::create_dir_all(&own).unwrap();
    let status = Command::new("tar").arg("-xJf").arg(&tarball).arg("-C").arg(&own).status();
    if !status.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no tar that reads {}", tarball.display());
        return None;
    }
    if std::fs::rename(&own, &target).is_err() {
        std::fs::remove_dir_all(&own).unwrap();
    }
    Some(target)
}

/// A folder for unpacked data beside the build outputs.
fn target_folder() -> PathBuf {
    let binary = std::env::current_exe().unwrap();
    binary.parent().unwrap().join("../../tmp")
}

fn tempfile_beside(target: &Path) -> PathBuf {
    let thread = format!("{:?}-{:?}", std::process::id(), std::thread::current().id());
    target.with_extension(thread.replace(['(', ')'], ""))
}

/// All JSON files below a folder, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "json") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The JSON in a file.
pub fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
