//! `contentEncoding` and `contentMediaType` of draft 7 as languages: Base64 and JSON. Later drafts made both annotations.
//!
//! JSON in a string is not regular: arrays and objects may be nested [`NESTED`] levels deep, so that nothing
//! invalid is accepted.

use std::sync::{Arc, LazyLock};

use super::read;
use crate::Regex;

/// Maximum nesting of arrays and objects.
const NESTED: u32 = 3;

/// Whether the encoding leaves the text as it is (RFC 2045).
pub(in crate::json_schema) fn is_plain(encoding: &str) -> bool {
    ["7bit", "8bit", "binary"].iter().any(|name| encoding.eq_ignore_ascii_case(name))
}

/// Whether the media type is JSON's.
pub(in crate::json_schema) fn is_json(media: &str) -> bool {
    media.eq_ignore_ascii_case("application/json")
}

/// The strings in an encoding; `None` for one that is not checked.
pub(in crate::json_schema) fn encoded(encoding: &str) -> Option<Arc<Regex>> {
    static BASE64: LazyLock<Arc<Regex>> = LazyLock::new(|| {
        // RFC 4648, section 4: the bits past the last byte are ignored.
        let four = "[A-Za-z0-9+/]{4}";
        Arc::new(read(&format!("(?:{four})*(?:[A-Za-z0-9+/]{{2}}==|[A-Za-z0-9+/]{{3}}=)?")))
    });
    encoding.eq_ignore_ascii_case("base64").then(|| Arc::clone(&BASE64))
}

/// The strings of a media type; `None` for one that is not checked.
pub(in crate::json_schema) fn of_media(media: &str) -> Option<Arc<Regex>> {
    static JSON: LazyLock<Arc<Regex>> = LazyLock::new(|| Arc::new(json()));
    is_json(media).then(|| Arc::clone(&JSON))
}

/// RFC 8259.
fn json() -> Regex {
    let blank = || read("[ \\t\\n\\r]*");
    let about = |regex: Regex| Regex::concat([blank(), regex, blank()]);
    let string = read("\"(?:[^\"\\\\\\u{0}-\\u{1F}]|\\\\(?:[\"\\\\/bfnrt]|u[0-9A-Fa-f]{4}))*\"");
    let number = read("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?");
    let single = Regex::or([read("null|true|false"), number, string.clone()]);
    let list = |item: Regex| {
        let more = Regex::concat([Regex::text(","), item.clone()]).repeat(0, None);
        Regex::or([blank(), Regex::concat([item, more])])
    };
    let mut value = single.clone();
    for _ in 0..NESTED {
        let array = Regex::concat([Regex::text("["), list(about(value.clone())), Regex::text("]")]);
        let member = Regex::concat([about(string.clone()), Regex::text(":"), about(value)]);
        let object = Regex::concat([Regex::text("{"), list(member), Regex::text("}")]);
        value = Regex::or([single.clone(), array, object]);
    }
    about(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Encoding, Exprs};

    fn matches(regex: &Regex, text: &str) -> bool {
        let mut exprs = Exprs::new(1 << 20);
        let expr = exprs.compile(regex, Encoding::Utf8).unwrap();
        exprs.matches(expr, text.as_bytes()).unwrap()
    }

    #[test]
    fn json_is_told_from_what_is_not() {
        let json = of_media("application/json").unwrap();
        for text in ["null", " -1.5e3 ", "[]", "[ 1 ,[[\"x\"]]]", "{\"a\\n\": {\"b\":[ ]} , \"é\":0}"] {
            assert!(
                matches(&json, text) && serde_json::from_str::<serde_json::Value>(text).is_ok(),
                "{text}"
            );
        }
        for text in ["", "{:}", "[1,]", "01", "\"\t\"", "[[[[1]]]]", "{\"a\"}", "'a'"] {
            assert!(!matches(&json, text), "{text}");
        }
    }

    #[test]
    fn base64_has_whole_groups() {
        let base64 = encoded("base64").unwrap();
        assert!(["", "eyJm", "eyI=", "ey=="].iter().all(|text| matches(&base64, text)));
        assert!(!["e", "ey=", "ey", "e===", "ey%m", "eyJm\n"].iter().any(|text| matches(&base64, text)));
        assert!(encoded("quoted-printable").is_none() && of_media("text/html").is_none());
    }
}
