//! Prints expressions for people.

use super::node::{ExprNode, ENDLESS};
use super::{ByteSet, ExprId, Exprs};

/// Longer output is cut.
const MAX: usize = 2_000;

impl Exprs {
    /// `e` in regular-expression notation, with `&` and `~` for intersection and complement and `{{n}}` for
    /// tags.
    pub fn show(&self, e: ExprId) -> String {
        let mut out = String::new();
        self.write(e, &mut out);
        if out.len() >= MAX {
            out.push('…');
        }
        out
    }

    fn write(&self, e: ExprId, out: &mut String) {
        if out.len() >= MAX {
            return;
        }
        match self.node(e) {
            ExprNode::Nothing => out.push('∅'),
            ExprNode::Tag(0) => out.push_str("()"),
            ExprNode::Tag(tag) => out.push_str(&format!("{{{{{tag}}}}}")),
            ExprNode::Class(set) => write_class(set, out),
            ExprNode::Bytes(from, to) => {
                out.push_str(&self.bytes_of(*from, *to).escape_ascii().to_string());
            }
            ExprNode::Concat(a, b) => {
                self.write(*a, out);
                self.write(*b, out);
            }
            ExprNode::Or(parts) => self.write_list(parts, '|', out),
            ExprNode::And(parts) => self.write_list(parts, '&', out),
            ExprNode::Not(of) => {
                out.push_str("~(");
                self.write(*of, out);
                out.push(')');
            }
            ExprNode::Repeat { of, min, max } => {
                out.push('(');
                self.write(*of, out);
                out.push(')');
                match (*min, *max) {
                    (0, ENDLESS) => out.push('*'),
                    (1, ENDLESS) => out.push('+'),
                    (0, 1) => out.push('?'),
                    (min, ENDLESS) => out.push_str(&format!("{{{min},}}")),
                    (min, max) => out.push_str(&format!("{{{min},{max}}}")),
                }
            }
            ExprNode::Dfa(dfa, state) => out.push_str(&format!("<automaton {dfa} from state {state}>")),
            ExprNode::Computed(dfa, state) => {
                out.push_str(&format!("<computed automaton {dfa} from state {state}>"));
            }
            ExprNode::Literals { set, from, to, depth } => {
                out.push_str(&format!("<{} texts of set {set} from byte {depth}>", to - from));
            }
        }
    }

    fn write_list(&self, parts: &[ExprId], between: char, out: &mut String) {
        out.push('(');
        for (n, &part) in parts.iter().enumerate() {
            if n > 0 {
                out.push(between);
            }
            self.write(part, out);
        }
        out.push(')');
    }
}

fn write_class(set: &ByteSet, out: &mut String) {
    let bytes: Vec<u8> = set.iter().collect();
    out.push('[');
    for run in bytes.chunk_by(|a, b| a + 1 == *b) {
        out.push_str(&[run[0]].escape_ascii().to_string());
        if run.len() > 1 {
            out.push('-');
            out.push_str(&[run[run.len() - 1]].escape_ascii().to_string());
        }
    }
    out.push(']');
}
