//! The token-tree payload: `{modelId, descriptors: [{path, leaves: [{name, tokens}]}]}`, read from JSON.
//!
//! One streaming pass, no recursion on the input's depth, memory a small multiple of the text. Every error says where
//! by JSON pointer, line and column.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::{Error, ErrorKind, Result, TokenId};

/// The largest token id a payload may hold: ids are 32-bit signed in the binary form.
pub const MAX_TOKEN_ID: TokenId = i32::MAX as TokenId;

/// The most tokens one payload may hold, over all its leaves.
pub const MAX_TOKENS: usize = 1 << 28;

/// A token-tree payload, as its maker wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    /// The model whose tokenizer made the token lists; `None` where the payload does not say.
    pub model_id: Option<String>,
    /// One for each span that it restricts; paths are distinct.
    pub descriptors: Vec<Descriptor>,
}

/// What one span may hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Which span: "action", "parameters.field", "contexts[]" (each element of that array).
    pub path: String,
    /// The values, in the payload's order.
    pub leaves: Vec<Leaf>,
}

/// One value and its tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leaf {
    /// The value's name.
    pub name: String,
    /// Its tokens; an empty list is allowed here and skipped when the tree is built.
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
        let trail = Trail::default();
        let mut from = serde_json::Deserializer::from_str(text);
        let read = PayloadSeed(&trail).deserialize(&mut from);
        let payload = read.and_then(|payload| from.end().map(|()| payload)).map_err(|e| trail.error(&e))?;
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
            return Err(too_many());
        }
        Ok(())
    }
}

fn too_many() -> Error {
    Error::new(ErrorKind::Limit, format!("the payload holds more than {MAX_TOKENS} tokens"))
}

/// Where the reader is, for errors: a JSON pointer in pieces. Pieces are taken off on success only, so that after
/// an error it still points at what was wrong.
#[derive(Default)]
struct Trail {
    pieces: RefCell<Vec<Piece>>,
    tokens: Cell<usize>,
    over_limit: Cell<bool>,
}

#[derive(Clone, Copy)]
enum Piece {
    Key(&'static str),
    Index(usize),
}

impl Trail {
    fn push(&self, piece: Piece) {
        self.pieces.borrow_mut().push(piece);
    }

    fn pop(&self) {
        self.pieces.borrow_mut().pop();
    }

    fn set_index(&self, index: usize) {
        if let Some(last) = self.pieces.borrow_mut().last_mut() {
            *last = Piece::Index(index);
        }
    }

    fn error(&self, error: &serde_json::Error) -> Error {
        if self.over_limit.get() {
            return too_many();
        }
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        let mut place = String::new();
        for piece in self.pieces.borrow().iter() {
            match piece {
                Piece::Key(key) => place.push_str(&format!("/{key}")),
                Piece::Index(index) => place.push_str(&format!("/{index}")),
            }
        }
        if !place.is_empty() {
            place.push_str(", ");
        }
        place.push_str(&format!("line {} column {}", error.line(), error.column()));
        Error::new(ErrorKind::Payload, format!("the payload cannot be read: {message}")).at(place)
    }
}

/// The fields that mean something here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    ModelId,
    Descriptors,
    Path,
    Leaves,
    Name,
    Tokens,
    Other,
}

impl<'de> de::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Key, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field name")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Key, E> {
                Ok(match name {
                    "modelId" => Key::ModelId,
                    "descriptors" => Key::Descriptors,
                    "path" => Key::Path,
                    "leaves" => Key::Leaves,
                    "name" => Key::Name,
                    "tokens" => Key::Tokens,
                    _ => Key::Other,
                })
            }
        }
        from.deserialize_identifier(KeyVisitor)
    }
}

/// Reads the value of field `name` into `slot` through `seed`, with the trail pointing at it.
fn field<'de, A, S>(
    map: &mut A,
    trail: &Trail,
    name: &'static str,
    slot: &mut Option<S::Value>,
    seed: S,
) -> Result<(), A::Error>
where
    A: MapAccess<'de>,
    S: DeserializeSeed<'de>,
{
    trail.push(Piece::Key(name));
    if slot.is_some() {
        return Err(de::Error::duplicate_field(name));
    }
    *slot = Some(map.next_value_seed(seed)?);
    trail.pop();
    Ok(())
}

struct PayloadSeed<'a>(&'a Trail);

impl<'de> DeserializeSeed<'de> for PayloadSeed<'_> {
    type Value = Payload;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Payload, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PayloadSeed<'_> {
    type Value = Payload;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token-tree payload (an object with descriptors)")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Payload, A::Error> {
        let (mut model_id, mut descriptors) = (None::<Option<String>>, None);
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::ModelId => {
                    field(&mut map, self.0, "modelId", &mut model_id, std::marker::PhantomData)?;
                }
                Key::Descriptors => {
                    let seed = ListSeed(self.0, "an array of descriptors", DescriptorSeed);
                    field(&mut map, self.0, "descriptors", &mut descriptors, seed)?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let descriptors = descriptors.ok_or_else(|| de::Error::missing_field("descriptors"))?;
        Ok(Payload { model_id: model_id.flatten(), descriptors })
    }
}

/// An array whose items are read by the seed that the third field makes.
struct ListSeed<'a, F>(&'a Trail, &'static str, F);

impl<'a, 'de, F, S> DeserializeSeed<'de> for ListSeed<'a, F>
where
    F: Fn(&'a Trail) -> S,
    S: DeserializeSeed<'de>,
{
    type Value = Vec<S::Value>;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'a, 'de, F, S> Visitor<'de> for ListSeed<'a, F>
where
    F: Fn(&'a Trail) -> S,
    S: DeserializeSeed<'de>,
{
    type Value = Vec<S::Value>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        self.0.push(Piece::Index(0));
        while let Some(item) = seq.next_element_seed((self.2)(self.0))? {
            items.push(item);
            self.0.set_index(items.len());
        }
        self.0.pop();
        Ok(items)
    }
}

struct DescriptorSeed<'a>(&'a Trail);

impl<'de> DeserializeSeed<'de> for DescriptorSeed<'_> {
    type Value = Descriptor;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Descriptor, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DescriptorSeed<'_> {
    type Value = Descriptor;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a descriptor (an object with path and leaves)")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Descriptor, A::Error> {
        let (mut path, mut leaves) = (None::<String>, None);
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Path => field(&mut map, self.0, "path", &mut path, std::marker::PhantomData)?,
                Key::Leaves => {
                    let seed = ListSeed(self.0, "an array of leaves", LeafSeed);
                    field(&mut map, self.0, "leaves", &mut leaves, seed)?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Descriptor {
            path: path.ok_or_else(|| de::Error::missing_field("path"))?,
            leaves: leaves.ok_or_else(|| de::Error::missing_field("leaves"))?,
        })
    }
}

struct LeafSeed<'a>(&'a Trail);

impl<'de> DeserializeSeed<'de> for LeafSeed<'_> {
    type Value = Leaf;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Leaf, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LeafSeed<'_> {
    type Value = Leaf;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a leaf (an object with name and tokens)")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Leaf, A::Error> {
        let (mut name, mut tokens) = (None::<String>, None);
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Name => field(&mut map, self.0, "name", &mut name, std::marker::PhantomData)?,
                Key::Tokens => {
                    let seed = ListSeed(self.0, "an array of token ids", TokenSeed);
                    field(&mut map, self.0, "tokens", &mut tokens, seed)?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Leaf {
            name: name.ok_or_else(|| de::Error::missing_field("name"))?,
            tokens: tokens.ok_or_else(|| de::Error::missing_field("tokens"))?,
        })
    }
}

struct TokenSeed<'a>(&'a Trail);

impl<'de> DeserializeSeed<'de> for TokenSeed<'_> {
    type Value = TokenId;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<TokenId, D::Error> {
        from.deserialize_u64(self)
    }
}

impl Visitor<'_> for TokenSeed<'_> {
    type Value = TokenId;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a token id (an integer from 0 to {MAX_TOKEN_ID})")
    }
    fn visit_u64<E: de::Error>(self, id: u64) -> Result<TokenId, E> {
        let count = self.0.tokens.get() + 1;
        self.0.tokens.set(count);
        if count > MAX_TOKENS {
            self.0.over_limit.set(true);
            return Err(E::custom("too many tokens"));
        }
        match TokenId::try_from(id) {
            Ok(id) if id <= MAX_TOKEN_ID => Ok(id),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(id), &self)),
        }
    }
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
        assert!(message.contains("expected an array of leaves"), "{message}");
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
