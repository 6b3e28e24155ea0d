//! Lazy terminals in choices: in `(call | other)* text`, where `call` is lazy, the text ends as soon as a call
//! could begin. A lexer would do so everywhere; here it applies where `|`, `?`, `*` and `+` let a lazy terminal
//! and something else start at the same position, which covers practical grammars.
//!
//! Each alternative to a lazy terminal L is copied with its first lexeme X restricted to the strings of X that
//! do not start with a string of L (an alternative that is lazy itself: that do not continue past one). The
//! naive version is that lexer: among all lexemes that may start at a position, a complete lazy one wins.

use std::collections::{BTreeSet, HashMap};

use super::super::rules::{Rule, RuleBody, RuleId};
use super::super::{CharSet, Regex};

/// Ids of lazy languages.
type Set = BTreeSet<usize>;

/// Facts about a rule or a node: which lazy languages may start it, and whether it is nullable.
#[derive(Clone, Default, PartialEq)]
struct First {
    lazy: Set,
    nullable: bool,
}

/// Maximum number of nodes visited and copied.
const MAX_WORK: usize = 800_000;

/// Gives the lazy rules (with their languages) priority over their alternatives. Returns whether that was
/// possible; with too many choices it is not, and the rules are then unusable.
pub(super) fn prefer(rules: &mut Vec<Rule>, lazy: &[(RuleId, Regex)]) -> bool {
    if lazy.is_empty() {
        return true;
    }
    let mut languages: Vec<Regex> = Vec::new();
    let mut of = HashMap::new();
    for (id, regex) in lazy {
        let number = languages.iter().position(|known| known == regex).unwrap_or_else(|| {
            languages.push(regex.clone());
            languages.len() - 1
        });
        of.insert(*id, number);
    }
    let mut choices = Choices {
        firsts: vec![First::default(); rules.len()],
        of,
        languages,
        copies: HashMap::new(),
        open: Vec::new(),
        extra: Vec::new(),
        work: 0,
    };
    choices.find_firsts(rules);
    for rule in rules.iter_mut() {
        let body = std::mem::replace(&mut rule.body, RuleBody::Seq(Vec::new()));
        rule.body = choices.choose(body);
    }
    rules.append(&mut choices.extra);
    while let Some((id, set, copy)) = choices.open.pop() {
        let body = choices.clone_of(&rules[id.index()].body);
        let body = choices.cut_rule(id, body, &set);
        rules[copy.index()].body = body;
        rules[copy.index()].marks = rules[id.index()].marks.clone();
        rules.append(&mut choices.extra);
    }
    choices.work <= MAX_WORK
}

struct Choices {
    /// The lazy languages that may start each rule, new rules included.
    firsts: Vec<First>,
    /// The language of each lazy rule.
    of: HashMap<RuleId, usize>,
    languages: Vec<Regex>,
    /// Copies of rules with their first lexemes restricted.
    copies: HashMap<(RuleId, Set), RuleId>,
    /// Copies without a body.
    open: Vec<(RuleId, Set, RuleId)>,
    /// New rules, to be appended to the others.
    extra: Vec<Rule>,
    /// Past the limit nothing is changed any more.
    work: usize,
}

impl Choices {
    /// The lazy languages that may start each rule: a fixpoint, iterated in both directions because rules
    /// mostly refer to later rules.
    fn find_firsts(&mut self, rules: &[Rule]) {
        let mut changed = true;
        while changed && self.work <= MAX_WORK {
            changed = false;
            for id in (0..rules.len()).rev().chain(0..rules.len()) {
                let mut first = self.first(&rules[id].body);
                first.lazy.extend(self.of.get(&RuleId::new(id)));
                if first != self.firsts[id] {
                    self.firsts[id] = first;
                    changed = true;
                }
            }
        }
    }

    fn first(&mut self, node: &RuleBody) -> First {
        self.work += 1;
        match node {
            RuleBody::Ref(id) => {
                let first = self.firsts[id.index()].clone();
                self.work += first.lazy.len();
                first
            }
            RuleBody::Seq(parts) => {
                let mut all = First { lazy: Set::new(), nullable: true };
                for part in parts {
                    let part = self.first(part);
                    all.lazy.extend(part.lazy);
                    if !part.nullable {
                        all.nullable = false;
                        break;
                    }
                }
                all
            }
            RuleBody::Alt(parts) => {
                let mut all = First::default();
                for part in parts {
                    let part = self.first(part);
                    all.lazy.extend(part.lazy);
                    all.nullable |= part.nullable;
                }
                all
            }
            RuleBody::Repeat { of, min, .. } => {
                let of = self.first(of);
                First { nullable: *min == 0 || of.nullable, ..of }
            }
            RuleBody::Lexeme(_) | RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_) => {
                First::default()
            }
        }
    }

    /// A copy, counted as work.
    fn clone_of(&mut self, node: &RuleBody) -> RuleBody {
        fn size(node: &RuleBody) -> usize {
            match node {
                RuleBody::Seq(parts) | RuleBody::Alt(parts) => 1 + parts.iter().map(size).sum::<usize>(),
                RuleBody::Repeat { of, .. } => 1 + size(of),
                _ => 1,
            }
        }
        self.work += size(node);
        node.clone()
    }

    /// The node with all choices in it resolved.
    fn choose(&mut self, node: RuleBody) -> RuleBody {
        match node {
            RuleBody::Alt(parts) => {
                let firsts: Vec<Set> = parts.iter().map(|part| self.first(part).lazy).collect();
                let mut times: HashMap<usize, usize> = HashMap::new();
                firsts.iter().flatten().for_each(|&number| *times.entry(number).or_default() += 1);
                let mut chosen = Vec::with_capacity(parts.len());
                for (part, own) in parts.into_iter().zip(firsts) {
                    self.work += times.len();
                    let others =
                        times.iter().filter(|(number, times)| **times > usize::from(own.contains(number)));
                    let others = if self.work > MAX_WORK {
                        Set::new()
                    } else {
                        others.map(|(number, _)| *number).collect()
                    };
                    let part = self.choose(part);
                    chosen.push(self.cut(part, &others));
                }
                RuleBody::Alt(chosen)
            }
            RuleBody::Repeat { of, min, max } => {
                RuleBody::Repeat { of: Box::new(self.choose(*of)), min, max }
            }
            RuleBody::Seq(parts) => self.sequence(parts),
            leaf => leaf,
        }
    }

    /// A sequence: an optional or repeated part is an alternative to what follows it.
    fn sequence(&mut self, parts: Vec<RuleBody>) -> RuleBody {
        let mut rest: Vec<RuleBody> = Vec::new(); // the other way round
        let mut after = First { lazy: Set::new(), nullable: true };
        for part in parts.into_iter().rev() {
            let inside = self.first(&part);
            let beside = !(after.lazy.is_empty() && inside.lazy.is_empty());
            match part {
                RuleBody::Repeat { of, min: min @ (0 | 1), max }
                    if beside && max.is_none_or(|max| max == 1) =>
                {
                    let of = self.choose(*of);
                    let tail = self.tail(rest, after.clone());
                    let once = self.clone_of(&of);
                    let of = self.cut(of, &after.lazy);
                    let skipped = RuleBody::Ref(self.copy(tail, &inside.lazy));
                    rest = match (min, max) {
                        (0, None) => vec![skipped, RuleBody::Repeat { of: Box::new(of), min: 0, max: None }],
                        (_, None) => {
                            vec![skipped, RuleBody::Repeat { of: Box::new(of), min: 0, max: None }, once]
                        }
                        (0, _) => {
                            vec![RuleBody::Alt(vec![RuleBody::Seq(vec![of, RuleBody::Ref(tail)]), skipped])]
                        }
                        (_, _) => vec![RuleBody::Ref(tail), once],
                    };
                }
                part => {
                    let part = self.choose(part);
                    rest.push(part);
                }
            }
            let behind = std::mem::replace(&mut after, inside);
            if after.nullable {
                after.lazy.extend(behind.lazy);
                after.nullable = behind.nullable;
            }
        }
        rest.reverse();
        RuleBody::Seq(rest)
    }

    /// A rule for the parts in `parts`, which are in reverse order; references to it stay flat.
    fn tail(&mut self, mut parts: Vec<RuleBody>, first: First) -> RuleId {
        match parts[..] {
            [RuleBody::Ref(id)] => id,
            _ => {
                parts.reverse();
                self.new_rule("~behind-choice".into(), RuleBody::Seq(parts), first)
            }
        }
    }

    fn new_rule(&mut self, name: String, body: RuleBody, first: First) -> RuleId {
        self.extra.push(Rule::new(name, body));
        self.firsts.push(first);
        RuleId::new(self.firsts.len() - 1)
    }

    /// The node with its first lexeme restricted: no string of it starts with a string of a lazy language. What
    /// follows a nullable part is restricted where `?` or `*` skip that part.
    fn cut(&mut self, node: RuleBody, set: &Set) -> RuleBody {
        if set.is_empty() || self.work > MAX_WORK {
            return node;
        }
        match node {
            RuleBody::Lexeme(regex) => RuleBody::Lexeme(Regex::and([regex, self.starting(set).not()])),
            RuleBody::Ref(id) => RuleBody::Ref(self.copy(id, set)),
            RuleBody::Alt(parts) => {
                RuleBody::Alt(parts.into_iter().map(|part| self.cut(part, set)).collect())
            }
            RuleBody::Seq(parts) => {
                let mut parts = parts.into_iter();
                let Some(first) = parts.next() else { return RuleBody::Seq(Vec::new()) };
                let rest: Vec<RuleBody> = parts.collect();
                if let RuleBody::Repeat { of, min: 0, max } = first {
                    let known = self.first(&RuleBody::Seq(rest.clone()));
                    self.work += rest.len();
                    let tail = self.tail(rest.into_iter().rev().collect(), known);
                    let without = RuleBody::Ref(self.copy(tail, set));
                    let once = self.cut(RuleBody::Repeat { of, min: 1, max }, set);
                    let with = RuleBody::Seq(vec![once, RuleBody::Ref(tail)]);
                    return if max == Some(0) { without } else { RuleBody::Alt(vec![with, without]) };
                }
                let first = self.cut(first, set);
                RuleBody::Seq([first].into_iter().chain(rest).collect())
            }
            RuleBody::Repeat { max: Some(0), .. } => RuleBody::Seq(Vec::new()),
            RuleBody::Repeat { of, min, max } => {
                let more = self.clone_of(&of);
                let more = RuleBody::Repeat {
                    of: Box::new(more),
                    min: min.saturating_sub(1),
                    max: max.map(|max| max - 1),
                };
                let once = RuleBody::Seq(vec![self.cut(*of, set), more]);
                match min {
                    0 => RuleBody::Repeat { of: Box::new(once), min: 0, max: Some(1) },
                    _ => once,
                }
            }
            other @ (RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_)) => other,
        }
    }

    /// Every string that starts with a string of a lazy language.
    fn starting(&self, set: &Set) -> Regex {
        let any = Regex::or(set.iter().map(|&number| self.languages[number].clone()));
        Regex::concat([any, Regex::anything()])
    }

    /// The restricted copy of a rule.
    fn copy(&mut self, id: RuleId, set: &Set) -> RuleId {
        let mut set = set.clone();
        if let Some(own) = self.of.get(&id) {
            set.remove(own);
        }
        if set.is_empty() {
            return id;
        }
        if let Some(&copy) = self.copies.get(&(id, set.clone())) {
            return copy;
        }
        let copy = self.new_rule("~cut".into(), RuleBody::Seq(Vec::new()), self.firsts[id.index()].clone());
        if let Some(&own) = self.of.get(&id) {
            self.of.insert(copy, own);
        }
        self.work += set.len();
        self.copies.insert((id, set.clone()), copy);
        self.open.push((id, set, copy));
        copy
    }

    /// The body of a copy. Of two lazy alternatives the one that is complete first wins.
    fn cut_rule(&mut self, id: RuleId, body: RuleBody, set: &Set) -> RuleBody {
        if !self.of.contains_key(&id) {
            return self.cut(body, set);
        }
        let any = Regex::or(set.iter().map(|&number| self.languages[number].clone()));
        let longer = Regex::concat([any, Regex::Set(CharSet::all()).repeat(1, None)]);
        let cut = |node: RuleBody| match node {
            RuleBody::Lexeme(regex) => RuleBody::Lexeme(Regex::and([regex, longer.not()])),
            other => other,
        };
        match body {
            // The ignored text after it is kept.
            RuleBody::Seq(parts) => {
                let mut parts = parts.into_iter();
                let first = parts.next().map(cut);
                RuleBody::Seq(first.into_iter().chain(parts).collect())
            }
            lexeme => cut(lexeme),
        }
    }
}
