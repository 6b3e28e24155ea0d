//! Tags and lazy grammars compared with naive versions that read a text from left to right, on all short texts
//! over a few letters.

use logitree_grammar::earley::{ConfigId, DEAD};
use logitree_grammar::gbnf;
use logitree_grammar::lazy::{self, Triggers};
use logitree_grammar::rules::Rules;
use logitree_grammar::tags::{self, Content, Mark, Tag, Tags};
use logitree_testing::gbnf_writer;
use logitree_testing::rules::{accepts, Running};
use proptest::prelude::*;

const LETTERS: [char; 2] = ['a', 'b'];
const LONGEST: usize = 7;

/// Walks all texts up to the maximum length and checks that `naive` and the recogniser accept the same.
fn compare(rules: &Rules, naive: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let mut machine = Running::new(rules).unwrap().machine;
    let mut open: Vec<(String, ConfigId)> = vec![(String::new(), machine.start())];
    while let Some((text, config)) = open.pop() {
        let accepted = config != DEAD && machine.is_accepting(config);
        if accepted != naive(&text) {
            return Err(format!("{text:?} is accepted: {accepted}\n{}", gbnf_writer::show(rules)));
        }
        if text.len() < LONGEST {
            for letter in LETTERS {
                let next = if config == DEAD { DEAD } else { machine.step(config, letter as u8).unwrap() };
                open.push((format!("{text}{letter}"), next));
            }
        }
    }
    Ok(())
}

/// What a grammar accepts, checked text by text.
fn language(grammar: &str) -> impl Fn(&str) -> bool {
    let rules = gbnf::parse(grammar).unwrap();
    move |text: &str| accepts(&rules, text)
}

/// llama.cpp's lazy grammar, checked after every character.
fn naive_lazy(text: &str, words: &[String], grammar: &dyn Fn(&str) -> bool) -> bool {
    for end in 0..=text.len() {
        let start = words.iter().filter_map(|word| text[..end].find(&**word)).min();
        if let Some(start) = start {
            return grammar(&text[start..]);
        }
    }
    true
}

/// Whether a text may be a tag's content.
type CanonicalStepper = Box<dyn Fn(&str) -> bool>;

/// Free text from `from` on, and what may follow it.
fn naive_tags(text: &str, from: usize, tags: &Tags, contents: &[CanonicalStepper]) -> bool {
    let word = |mark: &Mark| match mark {
        Mark::Text(text) => text.clone(),
        _ => unreachable!(),
    };
    let triggers: Vec<String> = tags.triggers.iter().map(word).collect();
    for end in from..=text.len() {
        // The longest of those that end here counts.
        let ended = triggers.iter().filter(|trigger| text[from..end].ends_with(&***trigger));
        let Some(trigger) = ended.max_by_key(|trigger| trigger.len()) else { continue };
        let start = end - trigger.len();
        for (tag, content) in tags.tags.iter().zip(contents) {
            let (begin, close) = (word(&tag.begin), word(&tag.end[0]));
            if !begin.starts_with(&**trigger) || !text[start..].starts_with(&*begin) {
                continue;
            }
            let inside = start + begin.len();
            for stop in inside..=text.len() {
                let closed = text[stop..].starts_with(&*close) && content(&text[inside..stop]);
                if closed && naive_tags(text, stop + close.len(), tags, contents) {
                    return true;
                }
            }
        }
        return false;
    }
    true
}

fn word(longest: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(LETTERS.to_vec()), 1..=longest).prop_map(String::from_iter)
}

fn body() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => word(3).prop_map(|word| format!("{word:?}")),
        1 => Just("[ab]*".to_string()),
        1 => Just("x".to_string()),
        1 => Just("\"\"".to_string()),
    ];
    let sequence = prop::collection::vec(part, 1..4).prop_map(|parts| parts.join(" "));
    prop::collection::vec(sequence, 1..4).prop_map(|ways| ways.join(" | "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn lazy_grammars_are_llama_cpps(words in prop::collection::vec(word(3), 1..4), body in body()) {
        // A rule that is not regular and always matches some text.
        let text = format!("root ::= {body}\nx ::= \"a\" x \"b\" | \"ab\"");
        let grammar = gbnf::parse(&text).unwrap();
        let made = lazy::rules(&grammar, &Triggers { words: words.clone(), ..Triggers::default() });
        let accepts = language(&text);
        match made {
            Ok(rules) => compare(&rules, &|text| naive_lazy(text, &words, &accepts))
                .map_err(|said| TestCaseError::fail(format!("{text}\n{words:?}\n{said}")))?,
            // An impossible trigger is an error, not a grammar.
            Err(error) => prop_assert!(error.message.contains("no text of the grammar starts with"), "{}", error),
        }
    }

    #[test]
    fn tags_are_read_from_left_to_right(
        all in prop::collection::vec((word(2), word(2), body(), word(2)), 1..4),
        more in prop::collection::vec(word(2), 0..2),
    ) {
        let mut tags = Tags::new(Vec::new());
        let mut contents: Vec<CanonicalStepper> = Vec::new();
        for (trigger, rest, body, end) in &all {
            let text = format!("root ::= {body}\nx ::= \"a\" x \"b\" | \"ab\"");
            contents.push(Box::new(language(&text)));
            tags.triggers.push(Mark::Text(trigger.clone()));
            tags.tags.push(Tag {
                begin: Mark::Text(format!("{trigger}{rest}")),
                content: Content::Rules(gbnf::parse(&text).unwrap()),
                end: vec![Mark::Text(end.clone())],
            });
        }
        for word in more {
            // Only triggers that start a tag.
            if all.iter().any(|(trigger, rest, ..)| format!("{trigger}{rest}").starts_with(&word)) {
                tags.triggers.push(Mark::Text(word));
            }
        }
        let rules = tags::rules(&Content::Tags(Box::new(tags.clone()))).unwrap();
        compare(&rules, &|text| naive_tags(text, 0, &tags, &contents))
            .map_err(|said| TestCaseError::fail(format!("{tags:?}\n{said}")))?;
    }
}
