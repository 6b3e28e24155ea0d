//! Well-known special markers by their text: which of them end a generation, and what kind they are. The texts and the
//! rules are llama.cpp's, so that both agree on where a generation ends.
//!
//! Rules
//! 1. A marker of [`END`] ends generation and is a control token whatever the file says.
//! 2. Fill-in-the-middle padding, repository and file separators end generation too: the id that the source
//!    names, or else the first token with a text of that group; these and the other fill-in-the-middle texts are
//!    control tokens where the source names none.
//! 3. `<|channel|>`, `<|message|>`, `<|start|>` and `<|constrain|>` are ordinary text (gpt-oss shows them).
//! 4. Where `<|call|>` and `<|return|>` end generation (or a call and `<|flush|>`), `<|end|>` does not: it closes
//!    one message, and is ordinary text.
//! 5. Where `<|tool_response>` or `<|plamo:eos|>` ends generation, `</s>` is an ordinary word.
//! 6. A control token whose text contains "unused" is unused.

use super::{Builder, TokenKind};
use crate::TokenId;

/// What a marker ends. Where a file names no end-of-turn token, llama.cpp takes the first one with a text of `Turn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Generation and a turn.
    Turn,
    /// Generation only.
    Text,
}

const END: [(&str, Ends); 23] = [
    ("<|eot_id|>", Ends::Turn),
    ("<|im_end|>", Ends::Turn),
    ("<|end|>", Ends::Turn),
    ("<|return|>", Ends::Text),
    ("<|call|>", Ends::Text),
    ("<|flush|>", Ends::Text),
    ("<|calls|>", Ends::Text),
    ("<end_of_turn>", Ends::Turn),
    ("<|endoftext|>", Ends::Turn),
    ("</s>", Ends::Text),
    ("<|eom_id|>", Ends::Text),
    ("<EOT>", Ends::Turn),
    ("_<EOT>", Ends::Turn),
    ("[EOT]", Ends::Turn),
    ("[EOS]", Ends::Text),
    ("<|end_of_text|>", Ends::Turn),
    ("<end_of_utterance>", Ends::Turn),
    ("<eos>", Ends::Text),
    ("<turn|>", Ends::Text),
    ("<|tool_response>", Ends::Text),
    ("<｜end▁of▁sentence｜>", Ends::Turn),
    ("[e~[", Ends::Text),
    ("<|plamo:eos|>", Ends::Text),
];
const SHOWN: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];
const BEGIN: [&str; 7] = [
    "<s>",
    "<bos>",
    "<|begin_of_text|>",
    "<|startoftext|>",
    "<｜begin▁of▁sentence｜>",
    "<|begin▁of▁sentence|>",
    "[BOS]",
];

/// Whether llama.cpp takes a token of this text for the end of a turn.
pub(super) fn ends_turn(text: &[u8]) -> bool {
    END.iter().any(|&(end, ends)| ends == Ends::Turn && end.as_bytes() == text)
}

/// A fill-in-the-middle role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fim {
    Prefix,
    Suffix,
    Middle,
    Pad,
    Repository,
    File,
}

const FIM: [(Fim, &[&str]); 6] = [
    (
        Fim::Prefix,
        &[
            "<|fim_prefix|>",
            "<fim-prefix>",
            "<fim_prefix>",
            "<｜fim▁begin｜>",
            "<PRE>",
            "▁<PRE>",
            "<|code_prefix|>",
            "<|prefix|>",
        ],
    ),
    (
        Fim::Suffix,
        &[
            "<|fim_suffix|>",
            "<fim-suffix>",
            "<fim_suffix>",
            "<｜fim▁hole｜>",
            "<SUF>",
            "▁<SUF>",
            "<|code_suffix|>",
            "<|suffix|>",
        ],
    ),
    (
        Fim::Middle,
        &[
            "<|fim_middle|>",
            "<fim-middle>",
            "<fim_middle>",
            "<｜fim▁end｜>",
            "<MID>",
            "▁<MID>",
            "<|code_middle|>",
            "<|middle|>",
        ],
    ),
    (Fim::Pad, &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"]),
    (Fim::Repository, &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"]),
    (Fim::File, &["<|file_sep|>"]),
];

/// Collects the markers of one vocabulary while its tokens go by.
#[derive(Debug, Default)]
pub(super) struct Markers {
    /// Ids that the source itself names as ends (eos, eot, eom).
    pub named_ends: Vec<TokenId>,
    /// Fill-in-the-middle ids that the source itself names.
    pub named_fim: Vec<(Fim, TokenId)>,
    found: Vec<(&'static str, TokenId)>,
    found_fim: Vec<(Fim, TokenId)>,
    begin: Option<TokenId>,
}

impl Markers {
    /// With `ends` as ids that the source names.
    pub fn naming(ends: Vec<TokenId>) -> Self {
        Markers { named_ends: ends, ..Markers::default() }
    }

    /// Looks at one token as the source writes it, and says its kind, which `kind` is before these rules.
    pub fn see(&mut self, id: TokenId, text: &[u8], kind: TokenKind) -> TokenKind {
        // Every marker starts with one of these, which spares nearly all tokens the comparisons.
        if !matches!(text.first(), Some(b'<' | b'[' | b'_' | 0xE2)) {
            return kind;
        }
        if let Some((end, _)) = END.iter().find(|(end, _)| end.as_bytes() == text) {
            // One model's own end marker, which does not end generation elsewhere: it matters for rule 5 only.
            if *end != "<|plamo:eos|>" || self.named_ends.contains(&id) {
                self.found.push((end, id));
                return TokenKind::Control;
            }
        }
        if SHOWN.iter().any(|shown| shown.as_bytes() == text) {
            return TokenKind::UserDefined;
        }
        if self.begin.is_none() && BEGIN.iter().any(|begin| begin.as_bytes() == text) {
            self.begin = Some(id);
        }
        for (role, texts) in FIM {
            if texts.iter().any(|fim| fim.as_bytes() == text) {
                if self.named_fim.iter().any(|(named, _)| *named == role) {
                    return kind;
                }
                self.found_fim.push((role, id));
                return TokenKind::Control;
            }
        }
        if kind == TokenKind::Control && text.windows(6).any(|w| w == b"unused") {
            return TokenKind::Unused;
        }
        kind
    }

    /// The id of the first beginning-of-sequence marker by text.
    pub fn begin(&self) -> Option<TokenId> {
        self.begin
    }

    /// The ends of generation, by all rules; rules 4 and 5 put tokens back among the ordinary ones.
    pub fn ends(&self, builder: &mut Builder) -> Vec<TokenId> {
        let mut ends = self.named_ends.clone();
        ends.extend(self.found.iter().map(|(_, id)| *id));
        for role in [Fim::Pad, Fim::Repository, Fim::File] {
            let of_role = |list: &[(Fim, TokenId)]| list.iter().find(|(r, _)| *r == role).map(|(_, id)| *id);
            ends.extend(of_role(&self.named_fim).or_else(|| of_role(&self.found_fim)));
        }
        let has = |text: &str| self.found.iter().any(|(t, _)| *t == text);
        let calls = has("<|call|>") || has("<|calls|>");
        if calls && ((has("<|return|>")) || has("<|flush|>")) {
            self.demote("<|end|>", TokenKind::UserDefined, &mut ends, builder);
        }
        if has("<|tool_response>") || has("<|plamo:eos|>") {
            self.demote("</s>", TokenKind::Normal, &mut ends, builder);
        }
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    fn demote(&self, text: &str, kind: TokenKind, ends: &mut Vec<TokenId>, builder: &mut Builder) {
        for (_, id) in self.found.iter().filter(|(t, _)| *t == text) {
            ends.retain(|end| end != id);
            builder.set_kind(*id, kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::VocabularyOptions;

    fn ends_and_kinds(texts: &[&str]) -> (Vec<TokenId>, Vec<TokenKind>) {
        let (mut markers, mut builder) = (Markers::default(), Builder::new());
        for (id, text) in texts.iter().enumerate() {
            let kind = markers.see(id as TokenId, text.as_bytes(), TokenKind::Normal);
            builder.push(kind, text.as_bytes()).unwrap();
        }
        let ends = markers.ends(&mut builder);
        let vocabulary = builder.build(VocabularyOptions::default()).unwrap();
        (ends, (0..texts.len() as TokenId).map(|id| vocabulary.kind(id)).collect())
    }

    #[test]
    fn every_rule() {
        use TokenKind::{Control, Normal, UserDefined};
        assert_eq!(
            ends_and_kinds(&["a", "</s>", "<|im_end|>"]),
            (vec![1, 2], vec![Normal, Control, Control])
        );
        assert_eq!(
            ends_and_kinds(&["<|file_sep|>", "<PRE>", "<PAD>", "[PAD]"]),
            (vec![0, 2], vec![Control, Control, Control, Control])
        );
        assert_eq!(ends_and_kinds(&["<|channel|>"]), (vec![], vec![UserDefined]));
        assert_eq!(
            ends_and_kinds(&["<|call|>", "<|return|>", "<|end|>"]),
            (vec![0, 1], vec![Control, Control, UserDefined])
        );
        assert_eq!(
            ends_and_kinds(&["<|calls|>", "<|flush|>", "<|end|>"]),
            (vec![0, 1], vec![Control, Control, UserDefined])
        );
        assert_eq!(ends_and_kinds(&["<|tool_response>", "</s>"]), (vec![0], vec![Control, Normal]));
        assert_eq!(ends_and_kinds(&["<|plamo:eos|>", "</s>"]), (vec![1], vec![Normal, Control]));
        let mut markers = Markers { named_fim: vec![(Fim::Pad, 9)], ..Default::default() };
        assert_eq!(markers.see(0, b"<PAD>", Normal), Normal);
        assert_eq!(markers.see(1, b"<unused7>", Control), TokenKind::Unused);
        assert_eq!(markers.ends(&mut Builder::new()), [9]);
    }
}
