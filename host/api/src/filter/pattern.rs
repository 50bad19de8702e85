//! Texts with wildcards.

/// A text in which each wildcard `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// What stands before, between and after the wildcards; at least one piece.
    pieces: Vec<String>,
}

impl Default for Pattern {
    fn default() -> Self {
        Self {
            pieces: vec![String::new()],
        }
    }
}

impl Pattern {
    /// Each `*` is a wildcard.
    pub fn unquoted(text: &str) -> Self {
        Self {
            pieces: text.split('*').map(str::to_owned).collect(),
        }
    }

    pub fn push(&mut self, character: char) {
        if let Some(last) = self.pieces.last_mut() {
            last.push(character);
        }
    }

    pub fn push_wildcard(&mut self) {
        self.pieces.push(String::new());
    }

    /// The text when there is no wildcard in it.
    pub fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [text] => Some(text),
            _ => None,
        }
    }

    /// Whether this is `*` alone.
    pub fn is_any(&self) -> bool {
        self.pieces.len() == 2 && self.pieces.iter().all(String::is_empty)
    }

    /// The text as it was written, without quotes and escapes.
    pub fn text(&self) -> String {
        self.pieces.join("*")
    }

    /// Whether the whole text matches. Each piece is taken at its first place, so the time is
    /// bounded by text length times pattern length.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, others)) = self.pieces.split_first() else {
            return false;
        };
        let Some((last, middle)) = others.split_last() else {
            return text == first;
        };
        let Some(mut rest) = text
            .strip_prefix(first.as_str())
            .and_then(|rest| rest.strip_suffix(last.as_str()))
        else {
            return false;
        };
        for piece in middle {
            match rest.find(piece.as_str()) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        true
    }
}

/// Whether `text` holds `part`, ASCII letters of either case being equal.
pub(super) fn holds(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    part.is_empty() || text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}
