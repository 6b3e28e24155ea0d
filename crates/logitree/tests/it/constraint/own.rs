//! A kind of constraint of one's own, as short as one can be: a state, the token after it, and the laws hold.

use logitree::constraint::{AfterEnd, Sequence, States};
use logitree::mask::AllowedTokens;
use logitree::{Result, TokenId};
use logitree_testing::laws;
use proptest::prelude::*;

const SIZE: TokenId = 12;

/// Ids that add up to a number; the state is what is left of it.
#[derive(Clone)]
struct AddsUp {
    ids: Vec<TokenId>,
    after: AfterEnd,
}

impl States for AddsUp {
    type At = TokenId;

    fn vocabulary_size(&self) -> usize {
        SIZE as usize
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn is_accepting(&self, rest: &TokenId) -> bool {
        *rest == 0
    }

    fn is_finished(&self, rest: &TokenId) -> bool {
        *rest == 0
    }

    fn allowed<'a>(&'a mut self, rest: &'a TokenId) -> Result<AllowedTokens<'a>> {
        Ok(AllowedTokens::Ids(&self.ids[..self.ids.partition_point(|id| id <= rest)]))
    }

    fn next(&mut self, rest: &TokenId, token: TokenId) -> Result<Option<TokenId>> {
        Ok(rest.checked_sub(token).filter(|_| self.ids.contains(&token)))
    }
}

proptest! {
    #[test]
    fn a_kind_of_ones_own_keeps_the_laws(total in 1..40u32, script in prop::collection::vec(any::<u16>(), 0..40)) {
        let kind = AddsUp { ids: (1..SIZE).collect(), after: AfterEnd::tokens(&[], &[0]) };
        let fresh = || Box::new(Sequence::begin(kind.clone(), total)) as Box<dyn logitree::constraint::Matcher>;
        laws::hold(&fresh, &script, &mut |tokens, seen| {
            let sum: TokenId = tokens.iter().sum();
            assert_eq!(seen.finished, sum == total);
        });
    }
}
