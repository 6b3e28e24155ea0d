//! GBNF: any text gives rules or an error, never a panic, and rules that are written read as the same rules again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::grammar::earley::RulesSource;
use logitree::grammar::expr::Exprs;
use logitree::grammar::gbnf;
use logitree::grammar::lazy::{self, Triggers};
use logitree_testing::gbnf_writer;

fuzz_target!(|text: &str| {
    let Ok(rules) = gbnf::parse(text) else { return };
    let written = gbnf_writer::write(&rules).expect("what GBNF said can be written in it");
    let again = gbnf::parse(&written).expect("what was written can be read");
    assert_eq!(gbnf_writer::write(&again).expect("as before"), written);
    assert_eq!(gbnf_writer::show(&rules), written);
    // Whether there is any text, and lazy grammars of it, end in an answer or an error.
    let mut exprs = Exprs::new(1 << 16);
    let _ = RulesSource::new(&rules, &mut exprs, None);
    let words = text.lines().last().into_iter().map(String::from).collect();
    let _ = lazy::rules(&rules, &Triggers { words, ..Triggers::default() });
});
