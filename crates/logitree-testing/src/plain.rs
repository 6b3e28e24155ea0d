//! A matcher without what makes others fast: an oracle for those that ask for it.

use logitree::constraint::{AfterEnd, Matcher};
use logitree::mask::AllowedTokens;
use logitree::{Result, TokenId};

use crate::laws::forced_slowly;

/// A matcher that has nothing but what it must: no certain bytes of its own, no numbers of states, no superset of the allowed tokens, and its
/// forced tokens one by one.
pub struct Plain(pub Box<dyn Matcher>);

impl Matcher for Plain {
    fn vocabulary_size(&self) -> usize {
        self.0.vocabulary_size()
    }
    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        self.0.allowed()
    }
    fn accept(&mut self, token: TokenId) -> Result<()> {
        self.0.accept(token)
    }
    fn rollback(&mut self, n: usize) -> Result<()> {
        self.0.rollback(n)
    }
    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(Plain(self.0.fork()))
    }
    fn reset(&mut self) {
        self.0.reset();
    }
    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        out.extend(forced_slowly(&*self.0, usize::MAX));
        Ok(())
    }
    fn is_accepting(&self) -> bool {
        self.0.is_accepting()
    }
    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
    fn after_end(&self) -> &AfterEnd {
        self.0.after_end()
    }
    fn accepted(&self) -> usize {
        self.0.accepted()
    }
}
