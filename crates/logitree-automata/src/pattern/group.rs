//! Reads groups, flags, lookaheads and lookbehinds, and reports what is not supported.

use super::node::{Assertion, PatternNode};
use super::read::Reader;
use super::terms::EMPTY;

impl Reader<'_> {
    /// Reads on after the opening parenthesis.
    pub(super) fn group(&mut self) -> PatternNode {
        let start = self.at - 1;
        if !self.eat("?") {
            return self.body(start);
        }
        let looks = [("=", false, false), ("!", false, true), ("<=", true, false), ("<!", true, true)];
        for (mark, behind, negated) in looks {
            if self.eat(mark) {
                let body = Box::new(self.body(start));
                let what = if behind {
                    Assertion::Behind { body, negated }
                } else {
                    Assertion::Ahead { body, negated }
                };
                return self.assert(start, what);
            }
        }
        if self.eat("#") {
            self.take_while(|c| c != ')');
            self.close(start);
            return PatternNode::Plain(EMPTY);
        }
        for (mark, what) in [
            ("P=", "a backreference is not a regular language"),
            ("P>", "recursion is not a regular language"),
            ("R", "recursion is not a regular language"),
            ("&", "recursion is not a regular language"),
            ("(", "conditional groups are not supported"),
        ] {
            if self.eat(mark) {
                self.problem(start, what);
                self.take_while(|c| c != ')');
                if mark == "(" {
                    self.eat(")");
                    return self.body(start);
                }
                self.close(start);
                return PatternNode::Plain(EMPTY);
            }
        }
        for (mark, what) in [
            (">", "atomic groups are not supported: they change how text is matched"),
            ("|", "groups that share numbers are not supported: write `(?:`"),
        ] {
            if self.eat(mark) {
                self.problem(start, what);
                return self.body(start);
            }
        }
        for (mark, end) in [("P<", '>'), ("<", '>'), ("'", '\'')] {
            if self.eat(mark) {
                return self.named(start, end);
            }
        }
        self.flagged(start)
    }

    fn named(&mut self, start: usize, end: char) -> PatternNode {
        let name = self.take_while(|c| c != end && c != ')');
        let fine = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
        if name.is_empty()
            || name.starts_with(|c: char| c.is_ascii_digit())
            || !fine
            || !self.eat(&end.to_string())
        {
            self.problem(start, "the name of this group is not one");
        }
        self.body(start)
    }

    /// `(?i)`, `(?s-m:..)`, `(?:..)`.
    fn flagged(&mut self, start: usize) -> PatternNode {
        let outer = self.flags;
        let mut on = true;
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                'i' => self.flags.ignore_case = on,
                'm' => self.flags.multi_line = on,
                's' => self.flags.dot_all = on,
                'x' => self.flags.extended = on,
                'u' | 'U' => {}
                '-' if on => on = false,
                ')' if self.at - start > 3 => return PatternNode::Plain(EMPTY),
                ':' => {
                    let body = self.body(start);
                    self.flags = outer;
                    return body;
                }
                _ => {
                    self.at -= 1;
                    break;
                }
            }
        }
        self.at = (self.at + 1).min(self.chars.len());
        let text = self.text(start);
        self.problem(start, format!("`{text}` begins no group that is known"));
        self.flags = outer;
        self.body(start)
    }

    /// The alternatives inside and the closing parenthesis.
    fn body(&mut self, start: usize) -> PatternNode {
        let body = self.alternatives();
        self.close(start);
        body
    }

    fn close(&mut self, start: usize) {
        if !self.eat(")") {
            self.problem(start, "this group is not closed");
        }
    }
}
