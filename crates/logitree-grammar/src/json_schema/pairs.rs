//! The forms in which models write an object as pairs of keys and values instead of JSON, such as
//! `<parameter=city>Oslo</parameter>`: texts as they are, other values as JSON.
//!
//! The names are those of XGrammar's styles.

use super::schema::TypeSet;

/// How the pairs of an object are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PairForm {
    /// Before a key.
    pub begin: String,
    /// Between a key and its value: one way for the types that it says, and only one for each type.
    pub middles: Vec<PairMiddle>,
    /// After a value. No text contains it.
    pub end: String,
    /// Whether white space may be around the texts of a schema that does not allow any text.
    pub is_loose: bool,
    /// Whether keys have `&quot;`, `&amp;`, `&lt;` and `&gt;`.
    pub has_entities: bool,
    /// What an item of an array begins with, before the middle without its first character; where arrays are no JSON.
    pub item: Option<String>,
}

/// What is between a key and a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PairMiddle {
    /// The types of the values after it, by JSON Schema's names; numbers are "number".
    pub types: &'static [&'static str],
    /// Its texts, with white space between them.
    pub parts: Vec<String>,
    /// Whether an object or array after it is written in the same form, and not in JSON.
    pub is_nested: bool,
}

impl PairMiddle {
    /// The types of the values after it.
    pub(crate) fn set(&self) -> TypeSet {
        let one = |name: &&str| match *name {
            "null" => TypeSet::NULL,
            "boolean" => TypeSet::BOOLEAN,
            "number" => TypeSet::NUMBER,
            "string" => TypeSet::STRING,
            "array" => TypeSet::ARRAY,
            _ => TypeSet::OBJECT,
        };
        TypeSet(self.types.iter().map(one).fold(0, |all, one| all | one.0))
    }
}

const ALL: &[&str] = &["null", "boolean", "number", "string", "array", "object"];
const NO_TEXT: &[&str] = &["null", "boolean", "number", "array", "object"];

/// The names of the forms.
pub const PAIR_FORMS: &str =
    "qwen_xml, minimax_xml, deepseek_xml, deepseek_v4_1_xml, glm_xml, kimi_k3_xml, cohere_xml";

impl PairForm {
    /// The form of a name of [`PAIR_FORMS`].
    pub fn named(name: &str) -> Option<PairForm> {
        let middle = |types: &'static [&'static str], part: &str| PairMiddle {
            types,
            parts: vec![part.into()],
            is_nested: false,
        };
        let plain = |begin: &str, middle_parts: &[&str], end: &str| PairForm {
            begin: begin.into(),
            middles: vec![PairMiddle {
                types: ALL,
                parts: middle_parts.iter().map(|&part| part.into()).collect(),
                is_nested: false,
            }],
            end: end.into(),
            is_loose: true,
            has_entities: false,
            item: None,
        };
        let deepseek = |parameter: &str| PairForm {
            middles: vec![
                middle(&["string"], "\" string=\"true\">"),
                middle(NO_TEXT, "\" string=\"false\">"),
            ],
            is_loose: false,
            ..plain(&format!("<｜DSML｜{parameter} name=\""), &[], &format!("</｜DSML｜{parameter}>"))
        };
        Some(match name {
            "qwen_xml" => plain("<parameter=", &[">"], "</parameter>"),
            "minimax_xml" => plain("<parameter name=\"", &["\">"], "</parameter>"),
            "glm_xml" => plain("<arg_key>", &["</arg_key>", "<arg_value>"], "</arg_value>"),
            "deepseek_xml" => deepseek("parameter"),
            "deepseek_v4_1_xml" => deepseek(" parameter"),
            "kimi_k3_xml" => PairForm {
                middles: ALL
                    .chunks(1)
                    .map(|types| middle(types, &format!("\" type=\"{}\"<|sep|>", types[0])))
                    .collect(),
                ..plain("<|open|>argument key=\"", &[], "<|close|>argument<|sep|>")
            },
            "cohere_xml" => {
                let kind = |types: &'static [&'static str], kind: &str, is_nested: bool| PairMiddle {
                    is_nested,
                    ..middle(types, &format!("\" type=\"{kind}\">"))
                };
                PairForm {
                    middles: vec![
                        kind(&["string"], "raw", false),
                        kind(&["null", "boolean", "number"], "json", false),
                        kind(&["object"], "dict", true),
                        kind(&["array"], "list", true),
                    ],
                    has_entities: true,
                    item: Some("<cofl:value".into()),
                    ..plain("<cofl:value name=\"", &[], "</cofl:value>")
                }
            }
            _ => return None,
        })
    }
}
