//! The forms in which models write an object as pairs of keys and values instead of JSON, such as
//! `<parameter=city>Oslo</parameter>`: texts as they are, other values as JSON.
//!
//! The names are those of XGrammar's styles. Other forms are described in JSON by the fields of [`PairForm`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::rules::{TokenName, TokenNames};
use super::schema::{keywords, Schema, SchemaNode, SubschemaId, TypeSet};
use crate::{Error, ErrorKind, Result};

/// How the pairs of an object are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairForm {
    /// Before a key.
    pub begin: Vec<MarkerPart>,
    /// Between a key and its value: one way for the types that it says.
    pub middles: Vec<PairMiddle>,
    /// After a value, where the way in which it was introduced has no end of its own.
    pub end: Vec<MarkerPart>,
    /// Between two pairs, and between two items; where there is one, markers may be empty.
    #[serde(default)]
    pub separator: String,
    /// What no text contains.
    pub excludes: Vec<String>,
    /// Whether the schema must name every key.
    #[serde(default)]
    pub named_only: bool,
    /// Whether white space may be wherever JSON has it.
    #[serde(default)]
    pub has_blanks: bool,
    /// Whether it may be around the texts of a schema that does not allow any text, too.
    #[serde(default)]
    pub is_loose: bool,
    /// Whether a text may be an array or object that breaks off inside of a string, where the value may be an array or object:
    /// to a reader what ends the value is a part of it then.
    #[serde(default)]
    pub may_break_off: bool,
    /// Whether keys have `&quot;`, `&amp;`, `&lt;` and `&gt;`.
    #[serde(default)]
    pub has_entities: bool,
    /// What an item of an array begins with, before the middle without its first character; where arrays are no JSON.
    #[serde(default)]
    pub item: Option<String>,
    /// The key of an item, where items are written as pairs are.
    #[serde(default)]
    pub item_key: Option<String>,
    /// Which values may be written as Python writes them, as well as in JSON.
    #[serde(default)]
    pub python: PythonValues,
}

/// A part of what is before, between or after a key and a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkerPart {
    /// These characters, whatever tokens spell them.
    Text(String),
    /// White space as JSON has it.
    Blank,
    /// At most so many spaces and new lines.
    Spaces(u32),
    /// The key of the pair once more, in what comes after its value.
    Key,
    /// A whole token.
    Token(#[serde(with = "one_token")] TokenNames),
}

/// Which values may be written as Python writes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PythonValues {
    /// None.
    #[default]
    Nothing,
    /// A value that is `True`, `False` or `None`.
    Words,
    /// Any: these words inside of arrays and objects, too, and strings between single quotes.
    Literals,
}

/// What is between a key and a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairMiddle {
    /// The types of the values after it, by JSON Schema's names; numbers are "number".
    pub types: Vec<String>,
    /// What it is.
    pub parts: Vec<MarkerPart>,
    /// What comes after the value, instead of the form's end.
    #[serde(default)]
    pub end: Option<Vec<MarkerPart>>,
    /// Whether an object or array after it is written in the same form, and not in JSON.
    #[serde(default)]
    pub is_nested: bool,
    /// What no text after it contains, instead of what the form excludes.
    #[serde(default)]
    pub excludes: Option<Vec<String>>,
}

mod one_token {
    use super::{TokenName, TokenNames};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(names: &TokenNames, to: S) -> Result<S::Ok, S::Error> {
        names.tokens[0].serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<TokenNames, D::Error> {
        TokenName::deserialize(from).map(|name| TokenNames { tokens: vec![name], negated: false })
    }
}

impl PairMiddle {
    /// The types of the values after it.
    pub(crate) fn set(&self) -> TypeSet {
        let one = |name: &String| match name.as_str() {
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

/// Characters that a key cannot have where nothing but them says where it ends.
const PUNCTUATION: [char; 6] = [':', ',', '{', '}', '[', ']'];
/// Characters that a key cannot have.
const RESERVED: [char; 6] = ['<', '>', '"', '\'', '/', '\\'];
/// Maximum number of characters of a key.
const MAX_KEY: usize = 256;
/// Maximum number of parts of a marker, and of middles.
const MAX_PARTS: usize = 64;

const ALL: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];
const NO_TEXT: [&str; 5] = ["null", "boolean", "number", "array", "object"];

/// The names of the forms.
pub const PAIR_FORMS: &str =
    "qwen_xml, minimax_xml, minimax_m3_xml, deepseek_xml, deepseek_v4_1_xml, glm_xml, kimi_k3_xml, cohere_xml";

/// What every tag of MiniMax M3 begins with.
const MINIMAX: &str = "]<]minimax[>[";

fn text(text: &str) -> Vec<MarkerPart> {
    vec![MarkerPart::Text(text.into())]
}

fn middle(types: &[&str], part: &str) -> PairMiddle {
    let types = types.iter().map(|&name| name.into()).collect();
    PairMiddle { types, parts: text(part), end: None, is_nested: false, excludes: None }
}

/// Cohere's values, each with its type.
fn cohere(plain: impl Fn(&str, Vec<PairMiddle>, &str) -> PairForm) -> PairForm {
    let kind = |types: &[&str], kind: &str, is_nested: bool| PairMiddle {
        is_nested,
        ..middle(types, &format!("\" type=\"{kind}\">"))
    };
    let middles = vec![
        kind(&["string"], "raw", false),
        kind(&["null", "boolean", "number"], "json", false),
        kind(&["object"], "dict", true),
        kind(&["array"], "list", true),
    ];
    PairForm {
        has_entities: true,
        item: Some("<cofl:value".into()),
        ..plain("<cofl:value name=\"", middles, "</cofl:value>")
    }
}

/// MiniMax M3's elements, one for each key and item.
fn minimax_m3(plain: impl Fn(&str, Vec<PairMiddle>, &str) -> PairForm) -> PairForm {
    let nested = PairMiddle { is_nested: true, ..middle(&["array", "object"], ">") };
    let end = format!("{MINIMAX}</");
    PairForm {
        end: vec![MarkerPart::Text(end), MarkerPart::Key, MarkerPart::Text(">".into())],
        excludes: vec![MINIMAX.into()],
        named_only: true,
        item_key: Some("item".into()),
        ..plain(
            &format!("{MINIMAX}<"),
            vec![middle(&["null", "boolean", "number", "string"], ">"), nested],
            MINIMAX,
        )
    }
}

impl PairForm {
    /// The form of a name of [`PAIR_FORMS`].
    pub fn named(name: &str) -> Option<PairForm> {
        let plain = |begin: &str, middles: Vec<PairMiddle>, end: &str| PairForm {
            begin: text(begin),
            middles,
            end: text(end),
            separator: String::new(),
            excludes: vec![end.into()],
            named_only: false,
            has_blanks: true,
            is_loose: true,
            may_break_off: true,
            has_entities: false,
            item: None,
            item_key: None,
            python: PythonValues::Nothing,
        };
        let deepseek = |parameter: &str| PairForm {
            is_loose: false,
            ..plain(
                &format!("<｜DSML｜{parameter} name=\""),
                vec![middle(&["string"], "\" string=\"true\">"), middle(&NO_TEXT, "\" string=\"false\">")],
                &format!("</｜DSML｜{parameter}>"),
            )
        };
        Some(match name {
            "qwen_xml" => plain("<parameter=", vec![middle(&ALL, ">")], "</parameter>"),
            "minimax_xml" => plain("<parameter name=\"", vec![middle(&ALL, "\">")], "</parameter>"),
            "glm_xml" => {
                let mut between = middle(&ALL, "</arg_key>");
                between.parts.extend([MarkerPart::Blank, MarkerPart::Text("<arg_value>".into())]);
                plain("<arg_key>", vec![between], "</arg_value>")
            }
            "deepseek_xml" => deepseek("parameter"),
            "deepseek_v4_1_xml" => deepseek(" parameter"),
            "kimi_k3_xml" => {
                let kind = |name| middle(&[name], &format!("\" type=\"{name}\"<|sep|>"));
                plain("<|open|>argument key=\"", ALL.map(kind).into(), "<|close|>argument<|sep|>")
            }
            "cohere_xml" => cohere(plain),
            "minimax_m3_xml" => minimax_m3(plain),
            _ => return None,
        })
    }

    /// Whether what comes after a value names its key.
    pub(crate) fn ends_with_key(&self) -> bool {
        let ends = self.middles.iter().filter_map(|middle| middle.end.as_ref());
        ends.chain([&self.end]).flatten().any(|part| *part == MarkerPart::Key)
    }

    /// What is wrong with the form itself, or with a schema in it, as far as its own keywords say it.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for a form without an end or with an unknown type, for a key that the form cannot write, and
    /// for one that the schema does not describe.
    pub(crate) fn check(&self, schema: &Schema) -> Result<()> {
        self.check_form()?;
        let SchemaNode::Keywords(k) = &schema.nodes[schema.root.index()] else { return Ok(()) };
        for (key, _) in &k.properties {
            self.written(key)?;
        }
        let is_named = |key: &str| k.properties.iter().any(|(name, _)| **name == *key);
        match k.required.iter().find(|key| self.named_only && k.in_place().is_empty() && !is_named(key)) {
            None => Ok(()),
            Some(key) => {
                let message = format!("{key:?} is required and not described");
                Err(Error::new(ErrorKind::Constraint, message).help("describe it under properties"))
            }
        }
    }

    /// Whether it is plain that every value can be written that the whole names, if the value exists.
    pub(crate) fn writes_all(&self, schema: &Schema) -> bool {
        let SchemaNode::Keywords(whole) = &schema.nodes[schema.root.index()] else { return false };
        let types = self.middles.iter().fold(0, |types, middle| types | middle.set().0);
        let is_free = |value: &Value| {
            value.as_str().is_some_and(|text| !self.excludes.iter().any(|end| text.contains(end.as_str())))
        };
        let is_written = |id: SubschemaId| {
            let SchemaNode::Keywords(keywords) = &schema.nodes[id.index()] else { return true };
            keywords! { &**keywords;
                read values, pattern, format;
                leave types, digits_only, minimum, maximum, multiple_of, min_length, max_length, items, min_items,
                      max_items, unique_items, contains, contains_evaluates, unevaluated_items, properties,
                      pattern_properties, additional_properties, unevaluated_properties, property_names, required,
                      min_properties, max_properties, dependent_required, dependent_schemas, all_of, any_of, one_of,
                      not, conditional, reading
            }
            pattern.is_none()
                && format.is_none()
                && values.as_ref().is_none_or(|values| values.iter().all(is_free))
                && keywords.in_place().is_empty()
        };
        types == TypeSet::ALL.0
            && self.middles.iter().all(|middle| middle.excludes.is_none())
            && !self.ends_with_key()
            && whole.in_place().is_empty()
            && whole.pattern_properties.is_empty()
            && whole.properties.iter().all(|&(_, id)| is_written(id))
    }

    fn check_form(&self) -> Result<()> {
        let wrong = |message: String| {
            let help = "a form of pairs has texts or tokens before, between and after its keys and values";
            Err(Error::new(ErrorKind::Constraint, message).help(help))
        };
        let middles = || self.middles.iter().map(|middle| &middle.parts);
        let ends = || self.middles.iter().filter_map(|middle| middle.end.as_ref());
        if self.middles.is_empty() || self.middles.len() > MAX_PARTS {
            return wrong(format!("a form of pairs has {} ways to introduce a value", self.middles.len()));
        }
        for parts in [&self.begin, &self.end].into_iter().chain(ends()).chain(middles()) {
            let is_some = |part: &MarkerPart| match part {
                MarkerPart::Text(text) => !text.is_empty(),
                MarkerPart::Token(_) | MarkerPart::Key => true,
                MarkerPart::Blank | MarkerPart::Spaces(_) => false,
            };
            let is_needed = self.separator.is_empty() && !parts.iter().any(is_some);
            if parts.len() > MAX_PARTS || is_needed {
                return wrong(format!("a marker of a form of pairs has {} parts", parts.len()));
            }
        }
        if self.begin.iter().chain(middles().flatten()).any(|part| *part == MarkerPart::Key) {
            return wrong("a form of pairs names the key where it has not come, or has just come".into());
        }
        if self.ends_with_key() && !self.named_only {
            return wrong(
                "a form of pairs names the key after a value, and the schema need not name it".into(),
            );
        }
        let mut excluded = self.middles.iter().filter_map(|middle| middle.excludes.as_ref());
        if excluded.any(|some| some.iter().any(String::is_empty))
            || self.excludes.iter().any(String::is_empty)
        {
            return wrong("a form of pairs excludes the empty text, and so every text".into());
        }
        let is_text = |parts: &Vec<MarkerPart>| matches!(parts.first(), Some(MarkerPart::Text(text)) if !text.is_empty());
        if (self.item.is_some() || !self.separator.is_empty()) && !middles().all(is_text) {
            return wrong("a form of pairs has items, and what follows a key is no text".into());
        }
        match self.middles.iter().flat_map(|middle| &middle.types).find(|name| !ALL.contains(&name.as_str()))
        {
            Some(name) => wrong(format!("a form of pairs names the type {name:?}")),
            None => Ok(()),
        }
    }

    /// A key as the form writes it.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if it cannot.
    pub(crate) fn written(&self, key: &str) -> Result<String> {
        if self.has_entities && !key.is_empty() && !key.contains('\0') {
            let key = key.replace('&', "&amp;").replace('"', "&quot;");
            return Ok(key.replace('<', "&lt;").replace('>', "&gt;"));
        }
        if self.has_entities
            || key.is_empty()
            || key.chars().count() > MAX_KEY
            || key.contains(|c: char| c.is_whitespace() || RESERVED.contains(&c))
            || (!self.separator.is_empty() && key.contains(PUNCTUATION))
        {
            let message = format!("the key {key:?} cannot be written without quotes");
            return Err(Error::new(ErrorKind::Constraint, message).help("name it otherwise"));
        }
        Ok(key.to_string())
    }

    /// The tokens that it names.
    pub(crate) fn named_tokens(&self) -> impl Iterator<Item = &TokenNames> {
        let middles =
            self.middles.iter().flat_map(|middle| middle.parts.iter().chain(middle.end.iter().flatten()));
        self.begin.iter().chain(middles).chain(&self.end).filter_map(|part| match part {
            MarkerPart::Token(names) => Some(names),
            MarkerPart::Text(_) | MarkerPart::Blank | MarkerPart::Spaces(_) | MarkerPart::Key => None,
        })
    }
}
