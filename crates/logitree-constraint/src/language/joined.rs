//! Languages in sequence, in turn or repeated: the parts that may be running, each with its state and what comes after it.

use super::{ByteLanguage, ByteState, Compound, Compounds, SharedLanguage};
use crate::compose::plan::{Beginning, Place, Plan};
use crate::{Error, ErrorKind, Result};
use logitree_grammar::earley::SetId;
use logitree_grammar::expr::ByteSet;
use logitree_grammar::rules::RuleBody;

/// Parts that may be running at the same time.
const MAX_THREADS: usize = 4_096;

/// Languages, and the order of their texts.
pub(crate) struct Joined {
    plan: Plan,
    parts: Vec<SharedLanguage>,
    states: Compounds,
}

impl Joined {
    /// # Errors
    /// Those of the languages and of [`Plan::new`].
    pub fn new(order: RuleBody, parts: Vec<SharedLanguage>) -> Result<Joined> {
        let mut beginnings = Vec::with_capacity(parts.len());
        for part in &parts {
            let start = part.start()?;
            let empty = part.is_end(&start)?;
            let mut more = !empty;
            if empty {
                for byte in part.bytes(&start)?.iter() {
                    more = more || part.step(&start, byte)?.is_some();
                }
            }
            beginnings.push(Beginning { empty, more });
        }
        Ok(Joined { plan: Plan::new(order, &beginnings)?, parts, states: Compounds::default() })
    }

    fn part(&self, place: u64) -> &dyn ByteLanguage {
        &*self.parts[unpacked(place).part as usize]
    }

    /// Adds the parts that begin.
    fn begin(&self, places: &[Place], threads: &mut Vec<(u64, ByteState)>) -> Result<()> {
        for &place in places {
            threads.push((packed(place), self.parts[place.part as usize].start()?));
        }
        Ok(())
    }

    fn state(&self, mut threads: Vec<(u64, ByteState)>, end: bool) -> Result<ByteState> {
        threads.sort_unstable();
        threads.dedup();
        if threads.len() > MAX_THREADS {
            let message = format!("more than {MAX_THREADS} parts of a composition may be running here");
            return Err(Error::new(ErrorKind::Limit, message)
                .help("let each part begin with what the part before it cannot contain"));
        }
        self.states.state(Compound { parts: threads.into(), end })
    }
}

fn packed(place: Place) -> u64 {
    u64::from(place.part) << 32 | u64::from(place.after.0)
}

fn unpacked(place: u64) -> Place {
    Place { part: (place >> 32) as u32, after: SetId(place as u32) }
}

impl ByteLanguage for Joined {
    fn start(&self) -> Result<ByteState> {
        let next = self.plan.start()?;
        let mut threads = Vec::new();
        self.begin(&next.places, &mut threads)?;
        self.state(threads, next.end)
    }

    fn step(&self, state: &ByteState, byte: u8) -> Result<Option<ByteState>> {
        let Some(compound) = self.states.get(state) else { return Ok(None) };
        let (mut threads, mut begun, mut end) = (Vec::new(), Vec::new(), false);
        let mut any = false;
        for (place, state) in &compound.parts {
            let part = self.part(*place);
            let Some(next) = part.step(state, byte)? else { continue };
            any = true;
            if part.is_end(&next)? {
                let after = self.plan.after(unpacked(*place))?;
                end |= after.end;
                begun.extend(after.places);
            }
            threads.push((*place, next));
        }
        if !any {
            return Ok(None);
        }
        begun.sort_unstable();
        begun.dedup();
        self.begin(&begun, &mut threads)?;
        self.state(threads, end).map(Some)
    }

    fn is_end(&self, state: &ByteState) -> Result<bool> {
        Ok(self.states.get(state).is_some_and(|compound| compound.end))
    }

    fn bytes(&self, state: &ByteState) -> Result<ByteSet> {
        let Some(compound) = self.states.get(state) else { return Ok(ByteSet::NONE) };
        let parts = compound.parts.iter();
        parts
            .map(|(place, state)| self.part(*place).bytes(state))
            .try_fold(ByteSet::NONE, |all, bytes| Ok(all.or(&bytes?)))
    }

    fn is_numbered(&self) -> bool {
        self.parts.iter().all(|language| language.is_numbered())
    }

    fn expected(&self, state: &ByteState) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let compound = self.states.get(state);
        for (place, state) in compound.iter().flat_map(|compound| compound.parts.iter()) {
            for text in self.part(*place).expected(state) {
                if !all.contains(&text) {
                    all.push(text);
                }
            }
        }
        all
    }
}
