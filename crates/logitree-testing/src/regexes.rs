//! A slow oracle for `Regex`: tries a text against every part of it.

use std::collections::{BTreeSet, HashMap};

use logitree_automata::{Dfa, Regex};

/// Whether the whole of `text` matches.
pub fn matches(regex: &Regex, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    Naive { text: &text, known: HashMap::new() }.spans(regex, 0, text.len())
}

struct Naive<'t> {
    text: &'t [char],
    /// (node, from, to), the node by its address: the tree does not move.
    known: HashMap<(*const Regex, usize, usize), bool>,
}

impl Naive<'_> {
    fn spans(&mut self, regex: &Regex, from: usize, to: usize) -> bool {
        let key = (std::ptr::from_ref(regex), from, to);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let answer = match regex {
            Regex::Nothing => false,
            Regex::Empty => from == to,
            Regex::Set(set) => to == from + 1 && set.contains(self.text[from]),
            Regex::Text(text) => text.chars().eq(self.text[from..to].iter().copied()),
            Regex::Concat(parts) => {
                let start = BTreeSet::from([from]);
                parts.iter().fold(start, |places, part| self.step(part, &places, to)).contains(&to)
            }
            Regex::Or(parts) => parts.iter().any(|part| self.spans(part, from, to)),
            Regex::And(parts) => parts.iter().all(|part| self.spans(part, from, to)),
            Regex::Automaton(dfa) => {
                let mut text = self.text[from..to].iter();
                let state = text.try_fold(Dfa::START, |state, &c| dfa.next(state, u8::try_from(c).ok()?));
                state.is_some_and(|state| dfa.is_accepting(state))
            }
            Regex::Computed(dfa) => {
                let mut text = self.text[from..to].iter();
                let state = text.try_fold(dfa.start(), |state, &c| dfa.next(state, u8::try_from(c).ok()?));
                state.is_some_and(|state| dfa.is_accepting(state))
            }
            Regex::Not(of) => !self.spans(of, from, to),
            Regex::Repeat { of, min, max } => self.repeats(of, *min, *max, from, to),
        };
        self.known.insert(key, answer);
        answer
    }

    /// The places that one more `part` leads to.
    fn step(&mut self, part: &Regex, places: &BTreeSet<usize>, to: usize) -> BTreeSet<usize> {
        let mut next = BTreeSet::new();
        for &from in places {
            next.extend((from..=to).filter(|&end| self.spans(part, from, end)));
        }
        next
    }

    fn repeats(&mut self, of: &Regex, min: u32, max: Option<u32>, from: usize, to: usize) -> bool {
        if max.is_some_and(|max| max < min) {
            return false;
        }
        let length = to - from;
        // The empty string repeats freely: a Regex has no anchors.
        let min = if self.spans(of, from, from) { 0 } else { min as usize };
        let max = max.map_or(usize::MAX, |max| max as usize);
        let mut places = BTreeSet::from([from]);
        for count in 0..=length.min(max) {
            if count >= min && places.contains(&to) {
                return true;
            }
            places = self.step(of, &places, to);
        }
        false
    }
}
