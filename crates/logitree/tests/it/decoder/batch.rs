//! A batch of decoders gives what a loop over its rows gives, whatever their number and that of the threads; rows come
//! and go; a finished row pads; a bad row is named and costs no other row its state.

use std::sync::Arc;

use logitree::catalogue::ItemWalk;
use logitree::constraint::Matcher;
use logitree::decoder::{batch, Decoder, Finish, Stop};
use logitree::sampling::{presets, Chain, Floats, Generator, Params};
use logitree::{ErrorKind, TokenId, TokenKind, Vocabulary};
use logitree_testing::constraints::catalogue;
use logitree_testing::logits as noise;
use logitree_testing::vocabulary::{of_tokens, token};

const END: TokenId = 3;

fn vocabulary(size: usize) -> Arc<Vocabulary> {
    let letter = |i: usize| token([b'a' + (i % 26) as u8], TokenKind::Normal);
    let tokens =
        (0..size).map(|i| if i as TokenId == END { token("<end>", TokenKind::Control) } else { letter(i) });
    of_tokens(tokens, &[END])
}

fn chain(seed: u64, rng: Generator) -> Chain {
    let params = Params::default().seed(seed).rng(rng).with("penalty_repeat", 1.3).with("temp", 1.5);
    presets::llama_cpp(&params).unwrap()
}

/// One of three items, followed by the end token.
fn items(size: usize) -> Box<dyn Matcher> {
    let tree = catalogue(&[&[5, 6, 7][..], &[5, 9], &[11, 12, 13, 14, 15]]);
    Box::new(ItemWalk { snapshot: tree.snapshot(), end: Some(END) }.sequence(size, &[]).unwrap())
}

/// Row `at`: every other one is constrained, each draws in its own way and stops at its own length.
fn decoder(vocabulary: &Arc<Vocabulary>, at: usize) -> Decoder {
    let matcher = at.is_multiple_of(2).then(|| items(vocabulary.len()));
    let stop = Stop::new(Some(2 + at % 5), Vec::new(), true).unwrap();
    let rng = Generator::ALL[at % Generator::ALL.len()];
    let mut decoder = Decoder::new(Arc::clone(vocabulary), chain(at as u64, rng), matcher, stop).unwrap();
    decoder.prime(&[at as TokenId % 20, 17]).unwrap();
    decoder
}

/// Pseudo-random logits.
fn logits(row: usize, step: usize, size: usize) -> Vec<f32> {
    noise(row as u32 * 31 + step as u32, size)
}

fn step(decoders: &mut [Decoder], logits: &[Vec<f32>], threads: usize) -> batch::Rows {
    let mut rows: Vec<&mut Decoder> = decoders.iter_mut().collect();
    let logits: Vec<Floats<'_>> = logits.iter().map(Floats::from).collect();
    batch::step(&mut rows, &logits, END, threads).unwrap()
}

#[test]
fn a_batch_equals_its_rows_one_by_one() {
    let vocabulary = vocabulary(150_000);
    for threads in [1, 2, 5, 0] {
        let mut fast: Vec<Decoder> = (0..16).map(|at| decoder(&vocabulary, at)).collect();
        let mut slow: Vec<Decoder> = fast.iter().map(Decoder::fork).collect();
        for at in 0..8 {
            let logits: Vec<Vec<f32>> = (0..16).map(|row| logits(row, at, vocabulary.len())).collect();
            let rows = step(&mut fast, &logits, threads);
            for ((row, slow), logits) in rows.iter().zip(&mut slow).zip(&logits) {
                let taken = row.as_ref().unwrap();
                assert_eq!(taken.is_padding, slow.finish().is_some());
                let token = if taken.is_padding { END } else { slow.step(logits).unwrap() };
                assert_eq!(taken.token, token);
            }
        }
        for (fast, slow) in fast.iter().zip(&slow) {
            assert_eq!((fast.tokens(), fast.finish()), (slow.tokens(), slow.finish()));
            assert!(fast.finish().is_some());
        }
    }
}

#[test]
fn a_bad_row_changes_no_other_row() {
    let vocabulary = vocabulary(40);
    let mut decoders: Vec<Decoder> = (0..6).map(|at| decoder(&vocabulary, at)).collect();
    step(&mut decoders, &(0..6).map(|row| logits(row, 0, 40)).collect::<Vec<_>>(), 1);
    let mut kept: Vec<Decoder> = decoders.iter().map(Decoder::fork).collect();
    let good: Vec<Vec<f32>> = (0..6).map(|row| logits(row, 1, 40)).collect();
    let mut bad = good.clone();
    bad[3] = vec![f32::NAN; 40];
    bad[5] = vec![0.0; 7];
    let rows = step(&mut decoders, &bad, 1);
    assert_eq!(rows.iter().filter(|row| row.is_err()).count(), 2);
    assert_eq!(decoders[4].tokens().len(), 2, "the others continued");
    let error = batch::all_or_none(&mut decoders.iter_mut().collect::<Vec<_>>(), rows).unwrap_err();
    assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Logits, "row 3, id 0"));
    for (decoder, kept) in decoders.iter().zip(&kept) {
        assert_eq!((decoder.tokens(), decoder.finish()), (kept.tokens(), kept.finish()));
    }
    let expected: Vec<_> = kept.iter_mut().zip(&good).map(|(kept, good)| kept.step(good).ok()).collect();
    let again = step(&mut decoders, &good, 1);
    let all = batch::all_or_none(&mut decoders.iter_mut().collect::<Vec<_>>(), again).unwrap();
    for (token, expected) in all.into_iter().zip(expected) {
        assert_eq!(token, expected.unwrap_or(END));
    }
}

#[test]
fn masks_and_tokens_from_outside() {
    let vocabulary = vocabulary(40);
    let mut over = decoder(&vocabulary, 0);
    for token in [5, 9] {
        over.accept(token).unwrap();
    }
    assert_eq!(over.finish(), Some(Finish::MaxTokens));
    let (mut constrained, mut free) = (decoder(&vocabulary, 2), decoder(&vocabulary, 1));
    let mut words = [[7u32; 3]; 3];
    let rows = |words: &mut [[u32; 3]; 3], decoders: &mut [&mut Decoder]| {
        batch::masks(decoders, words.iter_mut().map(|row| &mut row[..]).collect(), &[END, 99])
    };
    rows(&mut words, &mut [&mut over, &mut constrained, &mut free]).unwrap();
    assert_eq!(words[0], [1 << END, 0, 0]);
    assert_eq!(words[1], [1 << 5 | 1 << 11, 0, 0]);
    assert_eq!(words[2], [u32::MAX, 0xff, 0]);
    let mut short = [0u32; 1];
    let error = batch::masks(&mut [&mut free], vec![&mut short], &[END]).unwrap_err();
    assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Mask, "row 0"));
    assert_eq!(batch::masks(&mut [&mut free], vec![], &[END]).unwrap_err().kind, ErrorKind::Mask);

    let mut rows = [&mut over, &mut constrained, &mut free];
    let taken = batch::accept(&mut rows, &[END, 11, 30], &[END]).unwrap();
    assert_eq!(batch::all_or_none(&mut rows, taken).unwrap(), [END, 11, 30]);
    let cases = [
        ([END, 13, 30], "row 1, token 1 of the item", ErrorKind::Token),
        ([8, 12, 30], "row 0", ErrorKind::State),
    ];
    for (tokens, place, kind) in cases {
        let taken = batch::accept(&mut rows, &tokens, &[END]).unwrap();
        let error = batch::all_or_none(&mut rows, taken).unwrap_err();
        assert_eq!((error.kind, error.place.as_str()), (kind, place));
        let lengths: Vec<usize> = rows.iter().map(|row| row.tokens().len()).collect();
        assert_eq!(lengths, [2, 1, 1]);
    }
    assert_eq!(batch::accept(&mut rows, &[END], &[END]).unwrap_err().kind, ErrorKind::Sampling);
    assert_eq!(batch::step(&mut rows, &[], END, 0).unwrap_err().kind, ErrorKind::Sampling);
}

#[test]
fn sequences_are_those_of_the_chain_primed_alike() {
    let vocabulary = vocabulary(60);
    for rng in Generator::ALL {
        let first = |chain: Chain| {
            let mut made = Decoder::new(Arc::clone(&vocabulary), chain, None, Stop::default()).unwrap();
            made.prime(&[8, 9, 8]).unwrap();
            made
        };
        let mut fast = first(chain(5, rng)).sequences(4).unwrap();
        let mut slow: Vec<Decoder> = chain(5, rng).sequences(4).into_iter().map(first).collect();
        for at in 0..6 {
            for (fast, slow) in fast.iter_mut().zip(&mut slow).filter(|(fast, _)| fast.finish().is_none()) {
                let logits = logits(at, 7, 60);
                assert_eq!(fast.step(&logits).unwrap(), slow.step(&logits).unwrap());
            }
        }
        let unlike = fast.iter().filter(|other| other.tokens() != fast[0].tokens()).count();
        assert!(unlike > 0, "sequences draw apart");
        let before: Vec<TokenId> = fast[1].tokens().to_vec();
        fast[1].rollback(before.len()).unwrap();
        for (at, &token) in before.iter().enumerate() {
            assert_eq!(
                fast[1].step(&logits(at, 7, 60)).unwrap(),
                token,
                "rolled back to the sequence's first draw"
            );
        }
        let begun = fast.into_iter().next().unwrap();
        assert_eq!(begun.sequences(2).err().map(|error| error.kind), Some(ErrorKind::State));
    }
}
