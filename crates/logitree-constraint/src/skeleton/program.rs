//! A skeleton as the tracker's program: instructions over bytes, with alternatives in the order of their priority.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::compile::lengths;
use super::layout::{Layout, Part, ValueOf};
use super::recognise::{may_extend_number, Recogniser};
use crate::{Error, ErrorKind, Result};

/// Most enums that switches depend on.
pub const MAX_SWITCH_ENUMS: usize = 8;

/// One instruction; the next one follows it unless it says otherwise.
#[derive(Debug)]
pub(super) enum Op {
    /// These bytes.
    Bytes(Box<[u8]>),
    /// A span begins: one that holds others, or an enum of one value.
    Start(u32),
    /// It ends.
    End {
        span: u32,
        value: Option<u32>,
    },
    /// A value of a span. Its number is kept in a slot where a switch needs it.
    Value {
        span: u32,
        recogniser: Recogniser,
        slot: Option<u8>,
        /// The bytes that may follow the value.
        follow: Box<Bytes>,
    },
    /// An item of this array begins.
    Item(u32),
    /// First the next instruction, and then this one.
    Split(u32),
    Jump(u32),
    /// The instruction of the value in a slot.
    Switch {
        slot: u8,
        targets: Box<[u32]>,
    },
    /// The whole text was read.
    Match,
}

/// The instructions of a skeleton.
#[derive(Debug)]
pub(super) struct Program {
    pub ops: Vec<Op>,
    /// Whether the likeliest token is taken in a span, by number.
    pub greedy: Box<[bool]>,
}

/// A set of bytes.
pub(super) type Bytes = [bool; 256];

/// # Errors
/// [`ErrorKind::Payload`] with the span's place where nothing says where a span ends.
pub(super) fn program(layout: &Layout) -> Result<Arc<Program>> {
    let mut slots = Vec::new();
    switched(&layout.parts, &mut slots);
    if slots.len() > MAX_SWITCH_ENUMS {
        let message = format!("switches depend on {} enums, {MAX_SWITCH_ENUMS} is the most", slots.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    let has_json = contains_json(&layout.parts);
    let mut ends = Ends { layout, has_json, follows: FxHashMap::default() };
    ends.check(&layout.parts, &[false; 256], false)?;
    let mut writer = Writer { layout, ops: Vec::new(), slots, follows: ends.follows };
    writer.list(&layout.parts)?;
    writer.ops.push(Op::Match);
    let greedy = layout.spans.iter().map(|span| span.is_greedy).collect();
    Ok(Arc::new(Program { ops: writer.ops, greedy }))
}

/// The enums of several values that switches depend on.
fn switched(parts: &[Part], slots: &mut Vec<u32>) {
    for part in parts {
        match part {
            Part::Array { items, .. } => switched(items, slots),
            Part::Switch { on, cases, .. } => {
                let is_sampled = |p: &Part| matches!(p, Part::Value { span, .. } if span == on);
                if parts.iter().any(is_sampled) && !slots.contains(on) {
                    slots.push(*on);
                }
                cases.iter().for_each(|case| switched(case, slots));
            }
            Part::Value { .. } | Part::Run(_) => {}
        }
    }
}

/// Whether there is JSON under a schema, which is read by its structure only.
fn contains_json(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Value { of, .. } => matches!(of, ValueOf::Json(_) | ValueOf::Number(Some(_))),
        Part::Array { items, .. } => contains_json(items),
        Part::Switch { cases, .. } => cases.iter().any(|case| contains_json(case)),
        Part::Run(_) => false,
    })
}

fn recogniser(of: &ValueOf, place: &str) -> Result<Recogniser> {
    Ok(match of {
        ValueOf::Enum(texts) => Recogniser::words(texts),
        ValueOf::Boolean => Recogniser::words(&["true", "false"]),
        ValueOf::Number(_) => Recogniser::Number,
        ValueOf::String { in_string: true, schema } => {
            let (min, max) = lengths(schema.as_ref(), place)?;
            Recogniser::Text { quoted: false, min, max: max.unwrap_or(u32::MAX) }
        }
        ValueOf::String { .. } => Recogniser::Text { quoted: true, min: 0, max: u32::MAX },
        ValueOf::Json(_) => Recogniser::Json,
    })
}

struct Writer<'l> {
    layout: &'l Layout,
    ops: Vec<Op>,
    slots: Vec<u32>,
    follows: FxHashMap<u32, Box<Bytes>>,
}

impl Writer<'_> {
    fn here(&self) -> u32 {
        self.ops.len() as u32
    }

    fn bytes(&mut self, text: &str) {
        if !text.is_empty() {
            self.ops.push(Op::Bytes(text.as_bytes().into()));
        }
    }

    fn list(&mut self, parts: &[Part]) -> Result<()> {
        parts.iter().try_for_each(|part| self.part(part))
    }

    fn part(&mut self, part: &Part) -> Result<()> {
        match part {
            Part::Run(run) => {
                let mut from = 0;
                for mark in &run.marks {
                    self.bytes(&run.text[from..mark.at]);
                    from = mark.at;
                    self.ops.push(match mark.end {
                        None => Op::Start(mark.span),
                        Some(value) => Op::End { span: mark.span, value },
                    });
                }
                self.bytes(&run.text[from..]);
            }
            Part::Value { span, of } => {
                let recogniser = recogniser(of, &self.layout.spans[*span as usize].place)?;
                let slot = self.slots.iter().position(|on| on == span).map(|slot| slot as u8);
                let follow = self.follows.remove(span).unwrap_or_else(|| Box::new([true; 256]));
                self.ops.push(Op::Value { span: *span, recogniser, slot, follow });
            }
            Part::Array { span, items, max, .. } => self.array(*span, items, *max)?,
            Part::Switch { on, cases, case_of, .. } => {
                let Some(slot) = self.slots.iter().position(|known| known == on) else {
                    return self.list(&cases[case_of[0] as usize]);
                };
                let switch = self.here();
                self.ops.push(Op::Jump(0));
                let (mut starts, mut ends) = (Vec::new(), Vec::new());
                for case in cases {
                    starts.push(self.here());
                    self.list(case)?;
                    ends.push(self.here());
                    self.ops.push(Op::Jump(0));
                }
                let after = self.here();
                ends.into_iter().for_each(|at| self.ops[at as usize] = Op::Jump(after));
                let targets = case_of.iter().map(|&case| starts[case as usize]).collect();
                self.ops[switch as usize] = Op::Switch { slot: slot as u8, targets };
            }
        }
        Ok(())
    }

    /// `[ (item (, item)*)? ]`
    fn array(&mut self, span: u32, items: &[Part], max: Option<u32>) -> Result<()> {
        self.ops.push(Op::Start(span));
        self.bytes("[");
        let mut leave = Vec::new();
        if max != Some(0) {
            leave.push(self.here());
            self.ops.push(Op::Split(0));
            let item = self.here();
            self.ops.push(Op::Item(span));
            self.list(items)?;
            leave.push(self.here());
            self.ops.push(Op::Split(0));
            self.bytes(",");
            self.ops.push(Op::Jump(item));
        }
        let end = self.here();
        leave.into_iter().for_each(|at| self.ops[at as usize] = Op::Split(end));
        self.bytes("]");
        self.ops.push(Op::End { span, value: None });
        Ok(())
    }
}

/// Checks that the end of each span can be found.
struct Ends<'l> {
    layout: &'l Layout,
    has_json: bool,
    /// What may follow each value.
    follows: FxHashMap<u32, Box<Bytes>>,
}

impl Ends<'_> {
    /// `follow` is what the first byte after the list may be; `text` says whether a string's characters may follow.
    fn check(&mut self, parts: &[Part], follow: &Bytes, text: bool) -> Result<()> {
        let mut follow = *follow;
        let mut text = text;
        for (at, part) in parts.iter().enumerate().rev() {
            match part {
                Part::Value { span, of } => {
                    let next = match parts.get(at + 1) {
                        Some(Part::Run(run)) => run.text.as_str(),
                        _ => "",
                    };
                    self.value(*span, of, &follow, text, next)?;
                }
                Part::Array { items, .. } => {
                    let mut after = [false; 256];
                    after[usize::from(b',')] = true;
                    after[usize::from(b']')] = true;
                    self.check(items, &after, false)?;
                }
                Part::Switch { cases, .. } => {
                    cases.iter().try_for_each(|case| self.check(case, &follow, text))?;
                }
                Part::Run(_) => {}
            }
            let (first, first_text, is_empty) = first(part);
            follow = if is_empty { either(&first, &follow) } else { first };
            text = first_text || is_empty && text;
        }
        Ok(())
    }

    fn value(&mut self, span: u32, of: &ValueOf, follow: &Bytes, text: bool, next: &str) -> Result<()> {
        self.follows.insert(span, Box::new(*follow));
        let info = &self.layout.spans[span as usize];
        let is_text = matches!(of, ValueOf::String { in_string: true, .. });
        let refuse = |message: &str, help: &str| {
            Err(Error::new(ErrorKind::Payload, message).at(info.place.as_str()).help(help))
        };
        if is_text && text {
            return refuse("two strings with no text between them", "put a literal between the two");
        }
        let continuing = recogniser(of, &info.place)?.continuing();
        let mut is_open = continuing.iter().zip(follow).any(|(a, b)| *a && *b);
        if matches!(of, ValueOf::Json(_) | ValueOf::Number(_)) {
            is_open &= may_extend_number(next.as_bytes());
        }
        let by_structure = matches!(of, ValueOf::Json(_) | ValueOf::Number(Some(_)));
        if is_open && (by_structure || !info.in_string && self.has_json) {
            let message = "the text after the span may be read as a part of its value";
            return refuse(
                message,
                "let what follows begin with another character than digits, signs, a point or e",
            );
        }
        Ok(())
    }
}

/// The first bytes of a part, whether a string's characters may come first, and whether it may be empty.
fn first(part: &Part) -> (Bytes, bool, bool) {
    let mut bytes = [false; 256];
    match part {
        Part::Run(run) => match run.text.as_bytes().first() {
            Some(&byte) => bytes[usize::from(byte)] = true,
            None => return (bytes, false, true),
        },
        Part::Array { .. } => bytes[usize::from(b'[')] = true,
        Part::Value { of, .. } => {
            let is_text = matches!(of, ValueOf::String { in_string: true, .. });
            // Lengths that cannot be read are an error of `Ends::value`.
            let Ok(recogniser) = recogniser(of, "") else { return (bytes, is_text, true) };
            let (first, is_empty) = recogniser.first();
            return (first, is_text, is_empty);
        }
        Part::Switch { cases, .. } => {
            let (mut text, mut may_be_empty) = (false, false);
            for case in cases {
                let mut is_empty = true;
                for part in case {
                    let (first, first_text, part_is_empty) = self::first(part);
                    bytes = either(&bytes, &first);
                    text |= first_text;
                    is_empty = part_is_empty;
                    if !is_empty {
                        break;
                    }
                }
                may_be_empty |= is_empty;
            }
            return (bytes, text, may_be_empty);
        }
    }
    (bytes, false, false)
}

fn either(a: &Bytes, b: &Bytes) -> Bytes {
    std::array::from_fn(|at| a[at] || b[at])
}
