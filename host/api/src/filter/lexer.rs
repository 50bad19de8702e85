//! Words of a filter.

use super::FilterError;
use super::pattern::Pattern;

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Has,
}

/// Longest first, so that `<=` is not read as `<`.
const OPERATORS: [(&str, Operator); 7] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("!=", Operator::NotEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    (":", Operator::Has),
];

/// Comparisons of other languages: they would else be texts to look for.
const FOREIGN: [&str; 5] = ["between", "ilike", "in", "is", "like"];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Open,
    Close,
    And,
    Or,
    Not,
    Operator(Operator),
    /// A bare word; may be a path.
    Text(String),
    /// A text in quotes, or the value behind an operator.
    Literal {
        pattern: Pattern,
        quoted: bool,
    },
}

/// A word and where it is, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub word: Word,
    pub start: usize,
    pub end: usize,
}

/// Split a filter into words.
pub(super) fn split(filter: &str) -> Result<Vec<Token>, FilterError> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(first) = filter[at..].chars().next() {
        let rest = &filter[at..];
        let behind_operator = matches!(
            tokens.last(),
            Some(Token {
                word: Word::Operator(_),
                ..
            })
        );
        let (word, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first == '"' || first == '\'' {
            let (pattern, length) = quoted(filter, at, first)?;
            (Word::Literal { pattern, quoted: true }, length)
        } else if first == '(' {
            (Word::Open, 1)
        } else if first == ')' {
            (Word::Close, 1)
        } else if behind_operator {
            // A value runs to the next space or parenthesis: times and IPv6 addresses have colons.
            let length = rest
                .find(|c: char| c.is_whitespace() || c == '(' || c == ')')
                .unwrap_or(rest.len());
            if first == '=' {
                return Err(FilterError::new(filter, at, "=", "a value: equal is written =, once"));
            }
            refuse_signs(filter, at, &rest[..length])?;
            (
                Word::Literal {
                    pattern: Pattern::unquoted(&rest[..length]),
                    quoted: false,
                },
                length,
            )
        } else if let Some((text, operator)) = OPERATORS.iter().find(|(text, _)| rest.starts_with(text)) {
            (Word::Operator(*operator), text.len())
        } else if first == '-' {
            (Word::Not, 1)
        } else {
            let end = |c: char| c.is_whitespace() || "()=<>!:\"'".contains(c);
            let length = rest.find(end).unwrap_or(rest.len());
            if length == 0 {
                return Err(FilterError::new(
                    filter,
                    at,
                    &rest[..first.len_utf8()],
                    "a field, a text or \"(\"",
                ));
            }
            refuse_signs(filter, at, &rest[..length])?;
            let word = match &rest[..length] {
                "AND" => Word::And,
                "OR" => Word::Or,
                "NOT" => Word::Not,
                text if ["and", "or", "not"].contains(&text.to_ascii_lowercase().as_str()) => {
                    let expected = format!(
                        "{} in capitals; as a text it stands in quotes",
                        text.to_ascii_uppercase()
                    );
                    return Err(FilterError::new(filter, at, text, expected));
                }
                text if FOREIGN.contains(&text.to_ascii_lowercase().as_str()) => {
                    let expected =
                        "a comparison: = with * for any text, or (a = X OR a = Y); as a text it stands in quotes";
                    return Err(FilterError::new(filter, at, text, expected));
                }
                text => Word::Text(text.to_owned()),
            };
            (word, length)
        };
        tokens.push(Token {
            word,
            start: at,
            end: at + length,
        });
        at += length;
    }
    Ok(tokens)
}

/// `&&` and `||` of other languages would else be texts to look for, which nothing holds.
fn refuse_signs(filter: &str, at: usize, word: &str) -> Result<(), FilterError> {
    match word.find(['&', '|']) {
        Some(offset) => {
            let expected = "AND or OR in letters; a text with & or | stands in quotes";
            let signs = &word[offset..];
            let end = signs.find(|c| c != '&' && c != '|').unwrap_or(signs.len());
            Err(FilterError::new(filter, at + offset, &signs[..end], expected))
        }
        None => Ok(()),
    }
}

/// The text in quotes that begins at `at`, and its length with the quotes. `\` makes the next
/// character mean itself, also `*`.
fn quoted(filter: &str, at: usize, quote: char) -> Result<(Pattern, usize), FilterError> {
    let mut pattern = Pattern::default();
    let mut characters = filter[at..].char_indices().skip(1);
    while let Some((offset, character)) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some((_, escaped)) => pattern.push(escaped),
                None => break,
            },
            '*' => pattern.push_wildcard(),
            _ if character == quote => return Ok((pattern, offset + 1)),
            _ => pattern.push(character),
        }
    }
    Err(FilterError::new(filter, filter.len(), "", format!("a closing {quote}")))
}
