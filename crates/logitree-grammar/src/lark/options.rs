//! Reads the options of `%llguidance`.

use serde_json::Value;

use super::super::problems::Problems;

/// The options of a grammar.
#[derive(Default, Clone, Copy)]
pub(super) struct Options {
    /// Whether ignored text may precede everything else.
    pub(super) allow_initial_skip: bool,
    /// Whether ignored text is a single match of the ignored terminals.
    pub(super) ignore_once: bool,
}

impl Options {
    /// Adds the options in `json`, which is at the byte offset `at`.
    pub(super) fn read(&mut self, json: &str, at: usize, problems: &mut Problems) {
        let Ok(Value::Object(entries)) = serde_json::from_str(json) else {
            problems.add(at, "%llguidance needs an object", "write %llguidance {}");
            return;
        };
        for (key, value) in &entries {
            let Some(on) = value.as_bool() else {
                problems.add(at, format!("the option \"{key}\" is neither true nor false"), "");
                continue;
            };
            match key.as_str() {
                "allow_initial_skip" => self.allow_initial_skip |= on,
                "ignore_once" => self.ignore_once |= on,
                // Only unavoidable tokens are forced, so there is nothing to switch off.
                "no_forcing" => {}
                "allow_invalid_utf8" if on => {
                    problems.add(at, "allow_invalid_utf8 is not honoured: text is UTF-8", "leave it out");
                }
                "allow_invalid_utf8" => {}
                _ => {
                    let known = "known are allow_initial_skip, ignore_once, no_forcing";
                    problems.add(at, format!("unknown option \"{key}\""), known);
                }
            }
        }
    }
}
