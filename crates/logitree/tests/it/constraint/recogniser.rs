//! Recognisers of one's own: the laws, equality with feeding every token's bytes, and errors that change nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use logitree::constraint::{ByteRecogniser, Constraint, Recogniser};
use logitree::{Error, ErrorKind, Result, TokenId, Vocabulary};
use logitree_testing::laws::{self, look};
use logitree_testing::vocabulary::with_special;
use proptest::prelude::*;

/// Brackets, properly nested, at most three deep, then a full stop or nothing.
#[derive(Clone, Default)]
struct Brackets {
    read: Vec<u8>,
}

impl Brackets {
    fn open(&self) -> Option<usize> {
        self.read.iter().try_fold(0, |open, byte| match (byte, open) {
            (b'(', 0..3) => Some(open + 1),
            (b')', 1..=3) => Some(open - 1),
            (b'.', 0) => Some(99),
            _ => None,
        })
    }
}

impl ByteRecogniser for Brackets {
    fn push(&mut self, byte: u8) -> Result<bool> {
        self.read.push(byte);
        let taken = self.open().is_some();
        if !taken {
            self.read.pop();
        }
        Ok(taken)
    }

    fn pop(&mut self, n: usize) -> Result<()> {
        self.read.truncate(self.read.len() - n);
        Ok(())
    }

    fn is_end(&mut self) -> Result<bool> {
        Ok(matches!(self.open(), Some(0 | 99)))
    }
}

const TOKENS: [&str; 10] = ["(", ")", "()", "))", "((", ")(", ".", ").", "x", "(((("];
const END: TokenId = TOKENS.len() as TokenId;

fn vocabulary() -> Arc<Vocabulary> {
    with_special(&TOKENS, &["("], &[END])
}

/// Accepting, finished, and the allowed tokens, by feeding the bytes of every token.
fn naive(history: &[TokenId]) -> (bool, bool, Option<Vec<TokenId>>) {
    let mut recogniser = Brackets::default();
    for &token in history {
        if token == END || matches!(recogniser.open(), Some(99)) {
            return (true, true, Some(vec![END]));
        }
        recogniser.read.extend(TOKENS[token as usize].bytes());
    }
    if recogniser.open() == Some(99) {
        return (true, true, Some(vec![END]));
    }
    let fits = |text: &str| Brackets { read: [&recogniser.read, text.as_bytes()].concat() }.open().is_some();
    let mut allowed: Vec<TokenId> = (0..END).filter(|&id| fits(TOKENS[id as usize])).collect();
    let accepting = recogniser.open() == Some(0);
    allowed.extend(accepting.then_some(END));
    (accepting, false, Some(allowed))
}

proptest! {
    #[test]
    fn the_laws_hold_and_masks_equal_the_naive_ones(script in prop::collection::vec(any::<u16>(), 0..40)) {
        let constraint = Recogniser::new(|| Ok(Box::new(Brackets::default())));
        let matcher = constraint.matcher(&vocabulary()).unwrap();
        laws::hold(&|| matcher.fork(), &script, &mut |history, seen| {
            let found = (seen.accepting, seen.finished, seen.allowed.clone());
            assert_eq!(found, naive(history), "{history:?}");
        });
    }
}

/// Brackets whose calls fail while `calls` counts down to 0.
struct Failing {
    inner: Brackets,
    calls: Arc<AtomicUsize>,
}

impl Failing {
    fn call(&self) -> Result<()> {
        match self.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(1) => Err(Error::new(ErrorKind::Constraint, "failed on purpose")),
            _ => Ok(()),
        }
    }
}

impl ByteRecogniser for Failing {
    fn push(&mut self, byte: u8) -> Result<bool> {
        self.call()?;
        self.inner.push(byte)
    }

    fn pop(&mut self, n: usize) -> Result<()> {
        self.call()?;
        self.inner.pop(n)
    }

    fn is_end(&mut self) -> Result<bool> {
        self.call()?;
        self.inner.is_end()
    }
}

#[test]
fn an_error_changes_nothing_wherever_it_occurs() {
    let calls = Arc::new(AtomicUsize::new(0));
    let shared = Arc::clone(&calls);
    let make = move || -> Result<Box<dyn ByteRecogniser>> {
        Ok(Box::new(Failing { inner: Brackets::default(), calls: Arc::clone(&shared) }))
    };
    let mut matcher = Recogniser::new(make).matcher(&vocabulary()).unwrap();
    [0, 4].into_iter().for_each(|token| matcher.accept(token).unwrap());
    let before = look(&mut *matcher.fork());
    let mut failures = 0;
    for after in 1..60 {
        calls.store(after, Ordering::SeqCst);
        let results = [
            matcher.allowed().err(),
            matcher.accept(3).and_then(|()| matcher.rollback(1)).err(),
            matcher.is_allowed(8).err(),
            matcher.forced(&mut Vec::new()).err(),
        ];
        calls.store(0, Ordering::SeqCst);
        failures += results.iter().flatten().count();
        matcher.rollback(matcher.accepted() - 2).unwrap();
        assert_eq!(look(&mut *matcher), before, "after {after} calls");
    }
    assert!(failures > 8, "{failures}");
}

#[test]
fn a_recogniser_that_takes_nothing_is_refused() {
    struct Nothing;
    impl ByteRecogniser for Nothing {
        fn push(&mut self, _: u8) -> Result<bool> {
            Ok(false)
        }
        fn pop(&mut self, _: usize) -> Result<()> {
            Ok(())
        }
        fn is_end(&mut self) -> Result<bool> {
            Ok(false)
        }
    }
    let refused = Recogniser::new(|| Ok(Box::new(Nothing))).matcher(&vocabulary());
    assert_eq!(refused.err().map(|error| error.kind), Some(ErrorKind::Constraint));
}
