//! The C interface from Rust: random scripts of calls, and hostile texts and files.
#![allow(unsafe_code)] // calls the exported functions as C does

mod script;

use std::ffi::CStr;
use std::ptr;

use logitree_c::any::logitree_free;
use logitree_c::constraint::logitree_constraint_from_json;
use logitree_c::library::logitree_live_handles;
use logitree_c::status::{logitree_error_message, logitree_error_place};
use logitree_c::LogitreeStatus;

/// The status of a constraint's JSON form, and the place of its error.
fn form(json: &str) -> (LogitreeStatus, String) {
    let mut made = ptr::null_mut();
    // SAFETY: the text is as long as it says; the error's texts are read before the next call.
    unsafe {
        let status =
            logitree_constraint_from_json(json.as_ptr().cast(), json.len(), ptr::null(), &raw mut made);
        assert_eq!(made.is_null(), status != LogitreeStatus::Ok, "{json}");
        logitree_free(made.cast());
        if status != LogitreeStatus::Ok {
            assert!(!CStr::from_ptr(logitree_error_message()).is_empty());
        }
        (status, CStr::from_ptr(logitree_error_place()).to_string_lossy().into_owned())
    }
}

#[test]
fn errors_of_a_form_have_a_json_pointer() {
    for (json, place) in [
        (r#"{"type": "regex", "pattern": 5}"#, "/pattern"),
        (r#"{"type": "regex", "pattern": "a", "a/b": 1}"#, "/a~1b"),
        (r#"{"type": "sequence", "of": [{"type": "regex", "pattern": "a"}, {"type": "x"}]}"#, "/of/1/type"),
        (r#"{"type": "repeat", "of": {"type": "text"}, "min": -1}"#, "/min"),
        (r#"{"type": "reasoning_budget", "begin": [1], "end": [2], "then": {"type": "gbnf"}}"#, "/then"),
        (r#"{"type": "choices", "texts": ["a", 1]}"#, "/texts"),
        (
            r#"{"type": "lark", "text": "start: @x", "grammars": {"x": {"type": "choices", "texts": []}}}"#,
            "/grammars/x",
        ),
        ("{", "1:1"),
    ] {
        assert_eq!(form(json), (LogitreeStatus::ErrorConstraint, place.to_string()), "{json}");
    }
}

#[test]
fn hostile_texts_end_in_errors() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    for json in [
        deep("[", "]"),
        deep(r#"{"type": "repeat", "of": "#, "}"),
        format!(r#"{{"type": "regex", "pattern": {:?}}}"#, "(".repeat(100_000)),
        format!(r#"{{"type": "json_schema", "schema": {}}}"#, deep(r#"{"items":"#, "}")),
        format!(r#"{{"type": "gbnf", "text": {:?}}}"#, "root ::= root".repeat(10_000)),
    ] {
        assert_ne!(form(&json).0, LogitreeStatus::Ok);
        assert_ne!(form(&json).0, LogitreeStatus::ErrorInternal);
    }
}

/// A fixed sequence of numbers that look random.
fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn scripts_of_any_calls_neither_panic_nor_leak() {
    // Set up first, so that most calls have a handle that is alive.
    let setup: [[u8; 4]; 9] = [
        [0, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 2, 0, 0],
        [3, 0, 0, 0],
        [3, 1, 0, 0],
        [3, 2, 0, 0],
        [12, 0, 0, 0],
        [12, 1, 0, 0],
        [16, 0, 0, 0],
    ];
    let before = logitree_live_handles();
    for seed in 0..300 {
        script::run(&[setup.concat(), bytes(seed, 700)].concat());
    }
    // Other tests of this process make handles too, and free them.
    let waited = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        logitree_live_handles() <= before
    });
    assert!(waited, "{} handles are left", logitree_live_handles());
}
