//! The trie as text: an indented tree, and Graphviz. The size is always bounded.

use super::{Node, TokenTrie};
use std::fmt::Write;

/// How much of a trie to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpOptions {
    /// Bytes that lead to the node to start from; none for the root.
    pub prefix: Vec<u8>,
    /// Levels below the start to print.
    pub depth: usize,
    /// Nodes to print at most, the start not counted; what is left out is said.
    pub max_nodes: usize,
}

impl Default for DumpOptions {
    fn default() -> Self {
        DumpOptions { prefix: Vec::new(), depth: usize::MAX, max_nodes: 200 }
    }
}

/// A byte as it is read best: printable ASCII as itself, the rest escaped.
fn label(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, &byte| {
        match byte {
            b' ' => text.push('␣'),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\r' => text.push_str("\\r"),
            b'\\' => text.push_str("\\\\"),
            0x21..=0x7e => text.push(byte as char),
            _ => {
                let _ = write!(text, "\\x{byte:02x}"); // writing to a String cannot fail
            }
        }
        text
    })
}

/// What one printed node needs to know.
struct Line {
    node: Node,
    /// Levels below the start: 1 for its children.
    level: usize,
    /// Whether each level's node, from 1 to this one's, is the last of its siblings.
    last: Vec<bool>,
    /// Whether children exist that the depth limit cuts off.
    cut: bool,
}

impl TokenTrie {
    /// The part of the trie that `options` name as an indented tree: each node's byte, then the ids that end
    /// there. The first line names the start; a last line says how many nodes were left out, if any.
    pub fn dump(&self, options: &DumpOptions) -> String {
        let mut text = String::new();
        let Some(start) = self.find(&options.prefix) else {
            return format!("no token begins with {}\n", label(&options.prefix));
        };
        text.push_str(if options.prefix.is_empty() { "root" } else { "" });
        text.push_str(&label(&options.prefix));
        self.ids(start, &mut text);
        text.push('\n');
        let printed = self.lines(start, options, |line| {
            for &last in &line.last[..line.level - 1] {
                text.push_str(if last { "   " } else { "│  " });
            }
            text.push_str(if line.last[line.level - 1] { "└─ " } else { "├─ " });
            text.push_str(&label(&[self.byte(line.node)]));
            self.ids(line.node, &mut text);
            text.push_str(if line.cut { " …\n" } else { "\n" });
        });
        let left = self.size(start) - 1 - printed;
        if left > 0 {
            let _ = writeln!(text, "({left} nodes below are not shown)");
        }
        text
    }

    /// The same part as a Graphviz digraph: nodes where tokens end are boxes that name their ids.
    pub fn graphviz(&self, options: &DumpOptions) -> String {
        let quote = |s: &str| s.replace('\\', "\\\\").replace('"', "\\\"");
        let mut text = String::from("digraph trie {\n  rankdir=LR;\n  node [shape=circle, label=\"\"];\n");
        let Some(start) = self.find(&options.prefix) else {
            text.push_str("}\n");
            return text;
        };
        let declare = |node: Node, text: &mut String| {
            let mut ids = String::new();
            self.ids(node, &mut ids);
            if !ids.is_empty() {
                let _ = writeln!(text, "  n{} [shape=box, label=\"{}\"];", node.index(), ids.trim_start());
            }
        };
        let _ = writeln!(text, "  n{} [xlabel=\"{}\"];", start.index(), quote(&label(&options.prefix)));
        declare(start, &mut text);
        let mut path = vec![start];
        self.lines(start, options, |line| {
            path.truncate(line.level);
            let _ = writeln!(
                text,
                "  n{} -> n{} [label=\"{}\"];",
                path[line.level - 1].index(),
                line.node.index(),
                quote(&label(&[self.byte(line.node)]))
            );
            declare(line.node, &mut text);
            path.push(line.node);
        });
        text.push_str("}\n");
        text
    }

    fn ids(&self, node: Node, text: &mut String) {
        for id in self.tokens(node) {
            let _ = write!(text, " {id}");
        }
    }

    /// Calls `each` for the nodes to print, parents first, and returns how many they were.
    fn lines(&self, start: Node, options: &DumpOptions, mut each: impl FnMut(&Line)) -> usize {
        let mut printed = 0;
        let mut stack = vec![self.children(start).peekable()];
        let mut line = Line { node: start, level: 0, last: Vec::new(), cut: false };
        while let Some(children) = stack.last_mut() {
            if printed >= options.max_nodes {
                break;
            }
            let Some((_, node)) = children.next().filter(|_| options.depth > 0) else {
                stack.pop();
                continue;
            };
            let last = children.peek().is_none();
            line.node = node;
            line.level = stack.len();
            line.last.truncate(line.level - 1);
            line.last.push(last);
            line.cut = line.level >= options.depth && self.size(node) > 1;
            each(&line);
            printed += 1;
            if line.level < options.depth {
                stack.push(self.children(node).peekable());
            }
        }
        printed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_readable() {
        assert_eq!(label(b"a b\n\\\"\x00\xff"), "a␣b\\n\\\\\"\\x00\\xff");
    }
}
