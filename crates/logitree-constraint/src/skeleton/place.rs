//! Where in JSON a text ends that began outside of a string, and how values are written there.

use serde_json::Value;

/// Whether a text ends inside of a string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JsonPlace {
    pub in_string: bool,
    after_backslash: bool,
}

impl JsonPlace {
    pub fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.after_backslash => self.after_backslash = false,
                b'\\' if self.in_string => self.after_backslash = true,
                b'"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }

    /// `value` as it is written here: outside of a string as JSON, inside of one as a part of its content.
    pub fn write(self, value: &Value) -> String {
        let json = value.to_string();
        match (self.in_string, value) {
            (false, _) => json,
            (true, Value::String(_)) => json[1..json.len() - 1].to_string(),
            (true, _) => {
                let quoted = Value::from(json).to_string();
                quoted[1..quoted.len() - 1].to_string()
            }
        }
    }
}
