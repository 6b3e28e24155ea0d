//! Constraints as JSON whose names are paths: of index files of catalogues, and of files with a tokenizer.

use std::path::Path;
use std::sync::Arc;

use crate::catalogue::{Catalogue, Intersection, ItemWalk};
use crate::constraint::form::{Fields, Names, Reader};
use crate::constraint::Constraint;
use crate::tokenizer::Tokenizer;
use crate::{Result, Vocabulary};

/// The constraint of a JSON form; names in it are paths.
///
/// # Errors
/// Those of [`constraint::form::read`](crate::constraint::form::read) and of the files.
pub fn read(text: &[u8]) -> Result<Arc<dyn Constraint>> {
    read_for(text, None)
}

/// As [`read`]; the ids and names of token trees must fit the vocabulary, if there is one.
///
/// # Errors
/// Those of [`read`], and [`ErrorKind::Payload`](crate::ErrorKind::Payload) for a tree that does not fit.
pub fn read_for(text: &[u8], vocabulary: Option<&Vocabulary>) -> Result<Arc<dyn Constraint>> {
    crate::constraint::form::read(text, &Files { vocabulary })
}

/// Names are paths.
struct Files<'a> {
    vocabulary: Option<&'a Vocabulary>,
}

impl Names for Files<'_> {
    fn vocabulary(&self) -> Option<&Vocabulary> {
        self.vocabulary
    }

    fn tokenizer(&self, name: &str) -> Result<Arc<Tokenizer>> {
        let path = Path::new(name);
        let is_gguf = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
        let read = if is_gguf { Tokenizer::from_gguf(path) } else { Tokenizer::from_tokenizer_json(path) };
        read.map(Arc::new)
    }

    fn constraint(
        &self,
        kind: &str,
        fields: &mut Fields,
        reader: &Reader<'_>,
    ) -> Result<Option<Arc<dyn Constraint>>> {
        if kind != "catalogue" {
            return Ok(None);
        }
        let path = fields.text("index")?;
        let snapshot = Catalogue::open(Path::new(&path), false)?.snapshot();
        let walk = ItemWalk { snapshot, end: fields.token("end")? };
        let place = fields.at("and");
        let peers = fields.list("and")?.into_iter().enumerate();
        let peers: Vec<_> = peers
            .map(|(at, value)| reader.constraint(value, &format!("{place}/{at}")))
            .collect::<Result<_>>()?;
        let fuel = fields.count("fuel")?.map_or(Intersection::FUEL, |fuel| fuel as u64);
        Ok(Some(if peers.is_empty() { Arc::new(walk) } else { Arc::new(Intersection { walk, peers, fuel }) }))
    }
}
