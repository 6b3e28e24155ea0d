//! JSON files as typed values without a tree of everything in them: strings are borrowed, and other
//! fields are skipped.

use super::reader::malformed;
use crate::Result;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// A JSON string, borrowed from the file where it holds no escape.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The value in `bytes`.
///
/// # Errors
/// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary) naming the field (a dotted path) and the byte offset.
pub(crate) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    // Following the path costs time, so that is done only once something is known to be wrong.
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        Err(error) => {
            let mut reader = serde_json::Deserializer::from_slice(bytes);
            let path = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
                Err(error) => error.path().to_string(),
                Ok(_) => ".".to_string(),
            };
            Err(malformed(error.to_string(), offset(bytes, error.line(), error.column()), path))
        }
    }
}

/// The byte offset of a 1-based line and column.
fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let lines = bytes.split_inclusive(|&b| b == b'\n').take(line.saturating_sub(1));
    let start: usize = lines.map(<[u8]>::len).sum();
    (start + column.saturating_sub(1)).min(bytes.len())
}

/// A list of at most 64 values: a description, not data.
pub(crate) fn short_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    struct Short<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Short<T> {
        type Value = Option<Vec<T>>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of at most 64 values")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut out = Vec::new();
            while let Some(value) = list.next_element()? {
                if out.len() == 64 {
                    return Err(serde::de::Error::invalid_length(65, &self));
                }
                out.push(value);
            }
            Ok(Some(out))
        }
    }
    deserializer.deserialize_any(Short(std::marker::PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[allow(dead_code)]
        b: u32,
    }

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[allow(dead_code)]
        a: Vec<Inner>,
        #[serde(default, deserialize_with = "short_list")]
        c: Option<Vec<u32>>,
    }

    #[test]
    fn errors_name_field_and_offset() {
        let error = parse::<Outer>(b"{\"a\": [{\"b\": 1},\n {\"b\": \"x\"}]}").unwrap_err();
        assert_eq!(error.place, "offset 26, field a[1].b", "{error}");
        let error = parse::<Outer>(b"{\"a\": [").unwrap_err();
        assert!(error.place.starts_with("offset 6, field a"), "{error}");
        assert!(parse::<Outer>(b"\xFF").is_err() && parse::<Outer>(b"").is_err());
        assert_eq!(parse::<Outer>(b"{\"a\":[],\"c\":null}").unwrap().c, None);
        let long = format!("{{\"a\":[],\"c\":[{}0]}}", "0,".repeat(64));
        assert!(parse::<Outer>(long.as_bytes()).unwrap_err().message.contains("at most 64"));
    }
}
