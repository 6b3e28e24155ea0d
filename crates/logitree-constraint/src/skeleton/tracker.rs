//! Follows the bytes of a text through the spans of a skeleton: which span is active, where spans began and ended.
//!
//! Where the text could be read in several ways, each span in order is the longest possible, as in a regular expression
//! with greedy quantifiers. The readings that are still possible are kept in the order of their priority, as in Pike's
//! machine; nearly always there is one. What all of them agree on is settled. The slow version, which tries every end of
//! every span of a whole text, is the oracle of `tests/it/constraint/skeleton.rs`.

use std::sync::Arc;

use super::program::{Op, Program, MAX_SWITCH_ENUMS};
use super::recognise::State;
use crate::{Error, ErrorKind, Result};

/// More readings of one text than this are an error.
const MAX_READINGS: usize = 512;

/// The value of each enum that switches depend on.
type Slots = [u16; MAX_SWITCH_ENUMS];

/// What happened at a byte of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// The span began.
    Start,
    /// The span ended.
    End,
    /// An item of the array began.
    Item,
}

/// A mark of one reading, after those before it.
#[derive(Debug)]
struct Mark {
    before: Option<Arc<Mark>>,
    /// How many marks there are up to this one.
    number: u32,
    seen: SpanMark,
}

impl Drop for Mark {
    /// Long lists are dropped in a loop.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut mark) = next.and_then(Arc::into_inner) {
            next = mark.before.take();
        }
    }
}

/// Where a span began or ended, or an item of an array began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanMark {
    /// What happened.
    pub kind: MarkKind,
    /// The span's number.
    pub span: u32,
    /// The byte of the skeleton's text.
    pub at: usize,
    /// At the end of an enum: which of its values it is.
    pub value: Option<u32>,
}

/// The span in which the next token begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveSpan {
    /// Its number: for spans of the outermost list, their position.
    pub number: u32,
    /// Whether the likeliest token is taken unless a sampler says otherwise.
    pub is_greedy: bool,
}

/// One reading of the text.
#[derive(Debug, Clone)]
struct Reading {
    /// The instruction.
    op: u32,
    /// Bytes of the instruction that were read, for [`Op::Bytes`].
    bytes: u32,
    /// The value that is being read, for [`Op::Value`].
    state: Option<State>,
    slots: Slots,
    marks: Option<Arc<Mark>>,
}

impl Reading {
    fn is_same_place(&self, other: &Reading) -> bool {
        (self.op, self.bytes, self.slots) == (other.op, other.bytes, other.slots) && self.state == other.state
    }

    fn mark(&mut self, seen: SpanMark) {
        let before = self.marks.take();
        let number = before.as_ref().map_or(0, |mark| mark.number) + 1;
        self.marks = Some(Arc::new(Mark { before, number, seen }));
    }
}

/// The readings of a text so far. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tracker {
    program: Arc<Program>,
    readings: Vec<Reading>,
    length: usize,
}

impl Tracker {
    pub(super) fn new(program: &Arc<Program>) -> Tracker {
        let mut tracker = Tracker { program: Arc::clone(program), readings: Vec::new(), length: 0 };
        let first = Reading { op: 0, bytes: 0, state: None, slots: Slots::default(), marks: None };
        let mut readings = Vec::new();
        tracker.enter(first, 0, &mut readings);
        tracker.readings = readings;
        tracker
    }

    /// Number of bytes read.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Follows these bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Token`] if no reading has them; [`ErrorKind::Limit`] for too many readings. The tracker is not to be
    /// used then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let mut next = Vec::new();
        for &byte in bytes {
            if self.alone(byte) {
                self.length += 1;
                continue;
            }
            self.byte(byte, &mut next);
            std::mem::swap(&mut self.readings, &mut next);
            next.clear();
            if self.readings.is_empty() {
                let message = format!("byte {byte:#04x} continues no span of the skeleton");
                return Err(Error::new(ErrorKind::Token, message).at(format!("byte {}", self.length)));
            }
            if self.readings.len() > MAX_READINGS {
                let message = format!("the text can be read in more than {MAX_READINGS} ways");
                return Err(Error::new(ErrorKind::Limit, message)
                    .at(format!("byte {}", self.length))
                    .help("end spans with text that cannot be a part of them"));
            }
            self.length += 1;
        }
        Ok(())
    }

    /// Ends the text: the spans that may end, end here. Whether the text is complete; nothing changes if it is not.
    pub fn finish(&mut self) -> bool {
        for reading in &self.readings {
            let mut todo = vec![reading.clone()];
            while let Some(reading) = todo.pop() {
                if matches!(self.program.ops[reading.op as usize], Op::Match) {
                    self.readings = vec![reading];
                    return true;
                }
                let mut left = Vec::new();
                self.leave(&reading, self.length, &mut left);
                todo.extend(left.into_iter().rev());
            }
        }
        false
    }

    /// The span in which the next byte is expected, by the first reading; `None` in fixed text and after the end.
    pub fn active(&self) -> Option<ActiveSpan> {
        let Op::Value { span, .. } = self.program.ops[self.readings.first()?.op as usize] else {
            return None;
        };
        Some(ActiveSpan { number: span, is_greedy: self.program.greedy[span as usize] })
    }

    /// Number of marks that all readings agree on.
    pub fn settled(&self) -> usize {
        self.common().map_or(0, |mark| mark.number as usize)
    }

    /// The settled marks from number `from` on, in the order of the text.
    pub fn marks(&self, from: usize) -> Vec<SpanMark> {
        let mut marks = Vec::new();
        let mut next = self.common();
        while let Some(mark) = next.filter(|mark| mark.number as usize > from) {
            marks.push(mark.seen);
            next = mark.before.as_ref();
        }
        marks.reverse();
        marks
    }

    /// The bytes up to which it is certain that the spans that are open by the settled marks are the open ones.
    pub fn certain(&self) -> usize {
        let settled = self.settled();
        let next = |reading: &Reading| {
            let mut first = None;
            let mut mark = reading.marks.as_ref();
            while let Some(found) = mark.filter(|mark| mark.number as usize > settled) {
                first = Some(found.seen.at);
                mark = found.before.as_ref();
            }
            first
        };
        self.readings.iter().filter_map(next).min().unwrap_or(self.length)
    }

    /// The last mark that all readings have.
    fn common(&self) -> Option<&Arc<Mark>> {
        let (first, others) = self.readings.split_first()?;
        let mut common = first.marks.as_ref()?;
        for reading in others {
            let mut other = reading.marks.as_ref()?;
            while !Arc::ptr_eq(other, common) {
                if other.number >= common.number {
                    other = other.before.as_ref()?;
                } else {
                    common = common.before.as_ref()?;
                }
            }
        }
        Some(common)
    }

    /// Reads a byte within an instruction where there is one reading; false, with nothing changed, where there is more to
    /// it. Must equal [`Tracker::byte`].
    fn alone(&mut self, byte: u8) -> bool {
        let [reading] = &mut self.readings[..] else { return false };
        match (&self.program.ops[reading.op as usize], &reading.state) {
            (Op::Bytes(bytes), _) => {
                let next = reading.bytes as usize + 1;
                if next >= bytes.len() || bytes[next - 1] != byte {
                    return false;
                }
                reading.bytes += 1;
                true
            }
            (Op::Value { recogniser, follow, .. }, Some(state)) => {
                if follow[usize::from(byte)] && recogniser.is_complete(state) {
                    return false;
                }
                match recogniser.step(state, byte) {
                    Some(state) if recogniser.may_continue(&state) => {
                        reading.state = Some(state);
                        true
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// The readings after one more byte, the first ones first.
    fn byte(&self, byte: u8, next: &mut Vec<Reading>) {
        let mut todo: Vec<Reading> = Vec::new();
        for reading in &self.readings {
            self.read(reading, byte, next, &mut todo);
            while let Some(reading) = todo.pop() {
                self.read(&reading, byte, next, &mut todo);
            }
        }
    }

    /// Reads one byte. The readings in which the value had ended before it are put on `todo`.
    fn read(&self, reading: &Reading, byte: u8, next: &mut Vec<Reading>, todo: &mut Vec<Reading>) {
        match &self.program.ops[reading.op as usize] {
            Op::Bytes(bytes) => {
                if bytes[reading.bytes as usize] != byte {
                    return;
                }
                let mut reading = reading.clone();
                reading.bytes += 1;
                if (reading.bytes as usize) < bytes.len() {
                    return add(reading, next);
                }
                (reading.op, reading.bytes) = (reading.op + 1, 0);
                self.enter(reading, self.length + 1, next);
            }
            Op::Value { recogniser, follow, .. } => {
                let Some(state) = &reading.state else { return };
                if let Some(state) = recogniser.step(state, byte) {
                    let may_continue = recogniser.may_continue(&state);
                    let reading = Reading { state: Some(state), ..reading.clone() };
                    if may_continue {
                        add(reading, next);
                    } else {
                        self.leave(&reading, self.length + 1, next);
                    }
                }
                if follow[usize::from(byte)] {
                    let mut ended = Vec::new();
                    self.leave(reading, self.length, &mut ended);
                    todo.extend(ended.into_iter().rev());
                }
            }
            _ => {}
        }
    }

    /// The readings in which the value ends before byte `at`, if it may.
    fn leave(&self, reading: &Reading, at: usize, out: &mut Vec<Reading>) {
        let Op::Value { span, recogniser, slot, .. } = &self.program.ops[reading.op as usize] else { return };
        let Some(state) = reading.state.as_ref().filter(|state| recogniser.is_complete(state)) else {
            return;
        };
        let value = recogniser.value(state);
        let mut reading = Reading { state: None, op: reading.op + 1, ..reading.clone() };
        if let (Some(slot), Some(value)) = (slot, value) {
            reading.slots[usize::from(*slot)] = value as u16;
        }
        reading.mark(SpanMark { kind: MarkKind::End, span: *span, at, value });
        self.enter(reading, at, out);
    }

    /// Follows the program to the next instructions that read bytes, in the order of their priority.
    fn enter(&self, reading: Reading, at: usize, out: &mut Vec<Reading>) {
        let mut todo = vec![reading];
        while let Some(mut reading) = todo.pop() {
            let (mut next, mut seen) = (reading.op + 1, None);
            match &self.program.ops[reading.op as usize] {
                Op::Bytes(_) | Op::Match => {
                    add(reading, out);
                    continue;
                }
                Op::Value { span, recogniser, .. } => {
                    reading.state = Some(recogniser.start());
                    reading.mark(SpanMark { kind: MarkKind::Start, span: *span, at, value: None });
                    add(reading, out);
                    continue;
                }
                Op::Start(span) => seen = Some((MarkKind::Start, *span, None)),
                Op::End { span, value } => seen = Some((MarkKind::End, *span, *value)),
                Op::Item(span) => seen = Some((MarkKind::Item, *span, None)),
                Op::Split(second) => todo.push(Reading { op: *second, ..reading.clone() }),
                Op::Jump(to) => next = *to,
                Op::Switch { slot, targets } => {
                    next = targets[usize::from(reading.slots[usize::from(*slot)])];
                }
            }
            if let Some((kind, span, value)) = seen {
                reading.mark(SpanMark { kind, span, at, value });
            }
            reading.op = next;
            todo.push(reading);
        }
    }
}

/// Adds a reading unless an earlier one is in the same place.
fn add(reading: Reading, out: &mut Vec<Reading>) {
    if !out.iter().any(|other| other.is_same_place(&reading)) {
        out.push(reading);
    }
}

#[cfg(test)]
mod tests {
    use crate::Skeleton;

    /// Bytes alone are read as [`super::Tracker::byte`] reads them.
    #[test]
    fn one_reading_is_read_as_several_are() {
        let form = r#"{"spans": [{"kind": "literal", "value": "{\"a\":\""}, {"kind": "free-string"},
            {"kind": "literal", "value": " ab\",\"n\":"}, {"kind": "number"}, {"kind": "literal", "value": ".5,"},
            {"kind": "array", "items": [{"kind": "enum", "enumValues": ["x", "xy", 1, 12]}]},
            {"kind": "literal", "value": "}"}]}"#;
        let compiled = Skeleton::from_json(form).unwrap().compile().unwrap();
        for text in [
            r#"{"a":"x ab ab","n":1.5.5,["xy",12]}"#,
            r#"{"a":"é\u00e9 ab","n":-0.5,[]}"#,
            r#"{"a":"ab","n""#,
        ] {
            let (mut fast, mut slow) = (compiled.tracker(), compiled.tracker());
            for byte in text.bytes() {
                let mut next = Vec::new();
                slow.byte(byte, &mut next);
                slow.readings = next;
                slow.length += 1;
                let taken = fast.push(&[byte]).is_ok();
                assert_eq!(taken, !slow.readings.is_empty(), "{text} at {}", slow.length);
                if !taken {
                    break;
                }
                assert_eq!(fast.readings.len(), slow.readings.len());
                assert!(fast.readings.iter().zip(&slow.readings).all(|(a, b)| a.is_same_place(b)));
                assert_eq!((fast.marks(0), fast.certain()), (slow.marks(0), slow.certain()));
            }
        }
    }
}
