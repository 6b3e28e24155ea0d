//! The token-tree payload: `{modelId, descriptors: [{path, leaves: [{name, tokens}]}]}`, read from JSON.
//!
//! One streaming pass, no recursion on the input's depth, memory a small multiple of the text. Every error says where
//! by JSON pointer, line and column; the pointer is found in a second pass, once something is known to be wrong.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_path_to_error::{Path, Segment};

use crate::{Error, ErrorKind, Result, TokenId};

/// The largest token id a payload may hold: ids are 32-bit signed in the binary form.
pub const MAX_TOKEN_ID: TokenId = i32::MAX as TokenId;

/// The most tokens one payload may hold, over all its leaves.
pub const MAX_TOKENS: usize = 1 << 28;

/// A token-tree payload, as its maker wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// The model whose tokenizer made the token lists; `None` where the payload does not say.
    pub model_id: Option<String>,
    /// One for each span that it restricts; paths are distinct.
    #[serde(deserialize_with = "objects")]
    pub descriptors: Vec<Descriptor>,
}

/// What one span may hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Descriptor {
    /// Which span: "action", "parameters.field", "contexts[]" (each element of that array).
    pub path: String,
    /// The values, in the payload's order.
    #[serde(deserialize_with = "objects")]
    pub leaves: Vec<Leaf>,
}

/// One value and its tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Leaf {
    /// The value's name.
    pub name: String,
    /// Its tokens; an empty list is well-formed, and a mismatch for [`super::PayloadCheck`].
    #[serde(deserialize_with = "tokens")]
    pub tokens: Vec<TokenId>,
}

impl Payload {
    /// Reads JSON text. A leading UTF-8 byte order mark is skipped; unknown fields are ignored; `modelId` may be
    /// missing or null.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] for text that is not UTF-8 or not JSON, a field that is missing, repeated or of the
    /// wrong type, a token id that is not an integer from 0 to [`MAX_TOKEN_ID`], no descriptors, two descriptors
    /// with one path, or anything after the value; [`ErrorKind::Limit`] past [`MAX_TOKENS`] tokens.
    pub fn from_json(text: &[u8]) -> Result<Payload> {
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        let text = std::str::from_utf8(text).map_err(|e| {
            Error::new(ErrorKind::Payload, "the payload is not UTF-8")
                .at(format!("byte {}", e.valid_up_to()))
                .help("pass JSON text, or from_binary() for the binary form")
        })?;
        let payload = serde_json::from_str::<Object<Payload>>(text).map_err(|error| located(text, &error))?.0;
        payload.validate()?;
        Ok(payload)
    }

    /// Checks what the types cannot: see [`Payload::from_json`]. Call this for a payload built by hand.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] or [`ErrorKind::Limit`], as in [`Payload::from_json`].
    pub fn validate(&self) -> Result<()> {
        if self.descriptors.is_empty() {
            return Err(Error::new(ErrorKind::Payload, "the payload has no descriptors")
                .at("/descriptors")
                .help(
                    "without a descriptor nothing would be constrained: leave the token tree out instead",
                ));
        }
        let mut order: Vec<usize> = (0..self.descriptors.len()).collect();
        order.sort_by_key(|&i| self.descriptors[i].path.as_str());
        for pair in order.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            if self.descriptors[first].path == self.descriptors[second].path {
                let path = &self.descriptors[first].path;
                return Err(Error::new(
                    ErrorKind::Payload,
                    format!("descriptors {first} and {second} have one path, {path:?}"),
                )
                .at(format!("/descriptors/{second}/path"))
                .help("put their leaves into one descriptor"));
            }
        }
        let mut total = 0usize;
        for (d, descriptor) in self.descriptors.iter().enumerate() {
            for (l, leaf) in descriptor.leaves.iter().enumerate() {
                total += leaf.tokens.len();
                if let Some(t) = leaf.tokens.iter().position(|&id| id > MAX_TOKEN_ID) {
                    return Err(Error::new(
                        ErrorKind::Payload,
                        format!("token id {} is larger than {MAX_TOKEN_ID}", leaf.tokens[t]),
                    )
                    .at(format!("/descriptors/{d}/leaves/{l}/tokens/{t}")));
                }
            }
        }
        if total > MAX_TOKENS {
            let message = format!("the payload holds more than {MAX_TOKENS} tokens");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(())
    }
}

/// The error with its place: JSON pointer, line and column.
fn located(text: &str, error: &serde_json::Error) -> Error {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize::<_, Object<Payload>>(&mut reader);
    let shown = error.to_string();
    let message = shown.rsplit_once(" at line ").map_or(shown.as_str(), |(message, _)| message);
    // After a complete value the path is empty.
    let mut place = read.err().map_or(String::new(), |error| pointer(error.path()));
    if let Some(field) = message.strip_prefix("duplicate field `") {
        place = format!("{place}/{}", field.trim_end_matches('`'));
    }
    if !place.is_empty() {
        place.push_str(", ");
    }
    place.push_str(&format!("line {} column {}", error.line(), error.column()));
    Error::new(ErrorKind::Payload, format!("the payload cannot be read: {message}")).at(place)
}

/// The path as a JSON pointer.
fn pointer(path: &Path) -> String {
    let piece = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    };
    path.iter().map(piece).collect()
}

/// A value that is written as an object; the derived readers take arrays of its fields too.
struct Object<T>(T);

/// What an object is called in errors.
trait Named {
    const NAME: &'static str;
}

impl Named for Payload {
    const NAME: &'static str = "a token-tree payload (an object with descriptors)";
}

impl Named for Descriptor {
    const NAME: &'static str = "a descriptor (an object with path and leaves)";
}

impl Named for Leaf {
    const NAME: &'static str = "a leaf (an object with name and tokens)";
}

impl<'de, T: Deserialize<'de> + Named> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Named> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::NAME)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        from.deserialize_map(ObjectVisitor(PhantomData))
    }
}

fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de> + Named>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Object<T>>::deserialize(from)?.into_iter().map(|object| object.0).collect())
}

/// One token id.
struct Token(TokenId);

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Token, D::Error> {
        struct TokenVisitor;
        impl Visitor<'_> for TokenVisitor {
            type Value = Token;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a token id (an integer from 0 to {MAX_TOKEN_ID})")
            }
            fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<Token, E> {
                match TokenId::try_from(id) {
                    Ok(id) if id <= MAX_TOKEN_ID => Ok(Token(id)),
                    _ => Err(E::invalid_value(Unexpected::Unsigned(id), &self)),
                }
            }
        }
        from.deserialize_u64(TokenVisitor)
    }
}

fn tokens<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<TokenId>, D::Error> {
    Ok(Vec::<Token>::deserialize(from)?.into_iter().map(|token| token.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> (String, String) {
        let error = Payload::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Payload);
        (error.message, error.place)
    }

    #[test]
    fn reads_what_it_knows_and_ignores_the_rest() {
        let text = "\u{feff}{\"extra\": [[{}]], \"modelId\": \"m\", \"descriptors\": [
            {\"path\": \"action\", \"x\": null, \"leaves\": [{\"tokens\": [1, 2], \"name\": \"A\", \"y\": 1}]}]}";
        let payload = Payload::from_json(text.as_bytes()).unwrap();
        assert_eq!(payload.model_id.as_deref(), Some("m"));
        let leaf = Leaf { name: "A".into(), tokens: vec![1, 2] };
        assert_eq!(payload.descriptors, [Descriptor { path: "action".into(), leaves: vec![leaf] }]);
    }

    #[test]
    fn says_where() {
        let (message, at) = place(
            r#"{"descriptors":[{"path":"a","leaves":[{"name":"A","tokens":[1]},{"name":"B","tokens":[1,-2]}]}]}"#,
        );
        assert!(message.contains("integer `-2`, expected a token id"), "{message}");
        assert_eq!(at, "/descriptors/0/leaves/1/tokens/1, line 1 column 90");
        let (message, at) = place("{\"descriptors\": [\n  {\"path\": \"a\", \"leaves\": 5}]}");
        assert!(message.contains("expected a sequence"), "{message}");
        assert_eq!(at, "/descriptors/0/leaves, line 2 column 27");
        assert_eq!(place(r#"{"descriptors":[{"path":"a"}]}"#).1, "/descriptors/0, line 1 column 28");
    }

    #[test]
    fn a_deep_unknown_field_costs_no_stack() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        let text = format!(r#"{{"deep": {deep}, "descriptors": [{{"path": "a", "leaves": []}}]}}"#);
        assert_eq!(Payload::from_json(text.as_bytes()).unwrap().descriptors.len(), 1);
        assert!(Payload::from_json(deep.as_bytes()).is_err());
    }
}
