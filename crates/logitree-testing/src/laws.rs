//! The laws of `logitree::constraint::Matcher`, for any implementation: a script of numbers drives a matcher
//! through accept, not allowed accept, rollback, fork and reset, and after each the laws must hold.

use logitree::constraint::Matcher;
use logitree::mask::{bit, ids, words_for, AllowedTokens};
use logitree::{ErrorKind, TokenId};

/// What can be seen of a matcher without changing it. `allowed` is `None` where nothing is masked, and empty where asking
/// is an error because no token may follow.
#[derive(Debug, PartialEq, Eq, Clone)]
pub struct Seen {
    pub allowed: Option<Vec<TokenId>>,
    pub accepting: bool,
    pub finished: bool,
    pub accepted: usize,
    pub forced: Vec<TokenId>,
    /// The token and the bits of the number.
    pub bias: Option<(TokenId, u32)>,
}

/// Looks at everything.
pub fn look(matcher: &mut dyn Matcher) -> Seen {
    let size = matcher.vocabulary_size();
    let allowed = match matcher.allowed() {
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::State, "{error}");
            assert!(matcher.is_finished(), "law 3: a dead end was entered: {error}");
            Some(Vec::new())
        }
        Ok(AllowedTokens::All) => None,
        Ok(allowed) => {
            let mut words = vec![0; words_for(size)];
            allowed.write(size, &mut words);
            let ids: Vec<TokenId> = (0..size as TokenId).filter(|id| bit(&words, *id)).collect();
            assert!(ids.iter().all(|&id| allowed.contains(id)));
            if let AllowedTokens::Ids(few) = allowed {
                assert_eq!(few, ids, "Few is ascending, without repeats, inside the vocabulary");
            }
            Some(ids)
        }
    };
    let mut forced = Vec::new();
    matcher.forced(&mut forced).expect("within the fuel");
    let bias = matcher.bias().expect("within the fuel");
    Seen {
        allowed,
        accepting: matcher.is_accepting(),
        finished: matcher.is_finished(),
        accepted: matcher.accepted(),
        forced,
        bias: bias.map(|(token, by)| (token, by.to_bits())),
    }
}

/// Law 7 by its words, on a fork.
pub fn forced_slowly(matcher: &dyn Matcher, limit: usize) -> Vec<TokenId> {
    let mut on = matcher.fork();
    let mut run = Vec::new();
    while run.len() < limit && !on.is_finished() && !on.is_accepting() {
        let Some(allowed) = look(&mut *on).allowed else { break };
        let [only] = allowed[..] else { break };
        on.accept(only).expect("an allowed token");
        run.push(only);
    }
    run
}

/// The laws that one state must satisfy by itself.
fn state_laws(matcher: &mut dyn Matcher) -> Seen {
    let seen = look(matcher);
    assert_eq!(look(matcher), seen, "law 1: looking changes nothing");
    if let Some(allowed) = &seen.allowed {
        assert!(!allowed.is_empty() || seen.finished, "law 3: a dead end was entered");
        let size = matcher.vocabulary_size() as TokenId;
        let refused = (0..size).chain([size, u32::MAX]).find(|id| allowed.binary_search(id).is_err());
        if let Some(id) = refused {
            assert!(!matcher.is_allowed(id).expect("within the fuel"), "law 2: {id} is said to be allowed");
            let error = matcher.accept(id).expect_err("law 2: a token that is not allowed was taken");
            assert_eq!(error.kind, ErrorKind::Token);
            assert!(
                !matcher.take(id).expect("within the fuel"),
                "law 2: a token that is not allowed was taken"
            );
            assert_eq!(look(matcher), seen, "law 2: a refused token changed something");
        }
        for &id in allowed.iter().take(8) {
            assert!(matcher.is_allowed(id).expect("within the fuel"), "law 2: {id} is said to be refused");
            let mut tried = matcher.fork();
            tried.accept(id).expect("law 2: an allowed token was refused");
            assert_eq!(tried.accepted(), seen.accepted + 1);
            let mut taken = matcher.fork();
            assert!(taken.take(id).expect("within the fuel"), "law 2: an allowed token was refused");
            assert_eq!(look(&mut *taken), look(&mut *tried), "law 2: taken and accepted are not the same");
        }
    }
    let error = matcher.rollback(seen.accepted + 1).expect_err("law 4: rolled back past the start");
    assert_eq!(error.kind, ErrorKind::State);
    assert_eq!(look(matcher), seen, "law 4: a refused rollback changed something");
    assert_eq!(seen.forced, forced_slowly(matcher, seen.forced.len() + 1), "law 7");
    assert_eq!(look(&mut *matcher.fork()), seen, "law 5: a fork differs");
    if let Some((token, by)) = seen.bias {
        let is_allowed = seen.allowed.as_ref().is_none_or(|allowed| allowed.contains(&token));
        assert!(is_allowed && f32::from_bits(by).is_finite(), "law 9: {token}, {by:x}");
    }
    if seen.finished {
        assert!(seen.accepting && seen.forced.is_empty(), "law 8");
        let after = matcher.after_end().clone();
        assert_eq!(seen.allowed, (!after.is_free()).then(|| after.ids().to_vec()), "law 8");
        let mut words = vec![0; words_for(matcher.vocabulary_size()) + 1];
        match matcher.write(&mut words) {
            Ok(()) if after.is_free() => {}
            Ok(()) => assert_eq!(ids(&words).collect::<Vec<_>>(), after.ids(), "law 8: the mask"),
            Err(error) => assert!(after.ids().is_empty(), "law 8: {error}"),
        }
    }
    seen
}

/// Runs `script` over a matcher made by `fresh` and checks the laws in every state. `watch` gets each state with the
/// tokens accepted so far, to compare with a model.
pub fn hold(fresh: &dyn Fn() -> Box<dyn Matcher>, script: &[u16], watch: &mut dyn FnMut(&[TokenId], &Seen)) {
    let mut matcher = fresh();
    let born = state_laws(&mut *matcher);
    assert_eq!(born.accepted, 0, "law 6: born with tokens");
    let mut history: Vec<TokenId> = Vec::new();
    let mut parents: Vec<(Box<dyn Matcher>, Seen)> = Vec::new();
    watch(&history, &born);
    for &step in script {
        let (action, pick) = (step % 16, usize::from(step / 16));
        match action {
            0 => {
                let n = pick % (history.len() + 1);
                matcher.rollback(n).expect("law 4: a rollback was refused");
                history.truncate(history.len() - n);
            }
            1 => {
                matcher.reset();
                history.clear();
                assert_eq!(look(&mut *matcher), born, "law 6");
            }
            2 => {
                let child = matcher.fork();
                let seen = look(&mut *matcher);
                parents.push((std::mem::replace(&mut matcher, child), seen));
            }
            _ => {
                let token = match look(&mut *matcher).allowed {
                    None => pick as TokenId,
                    Some(allowed) if allowed.is_empty() => continue,
                    Some(allowed) => allowed[pick % allowed.len()],
                };
                matcher.accept(token).expect("law 2: an allowed token was refused");
                history.push(token);
            }
        }
        let seen = state_laws(&mut *matcher);
        let mut replayed = fresh();
        history.iter().for_each(|&t| replayed.accept(t).expect("law 1: the same tokens again"));
        assert_eq!(look(&mut *replayed), seen, "laws 1 and 4: the state is not the tokens' alone");
        watch(&history, &seen);
    }
    for (mut parent, then) in parents {
        assert_eq!(look(&mut *parent), then, "law 5: a child changed its parent");
    }
}
