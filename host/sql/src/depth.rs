//! How deep the tree of a query can be: it is planned, and dropped, by functions that call themselves.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Operators and brackets of a query, at most: each may be a level of its tree. What they need of the stack is measured in
/// tests, in a build that is not optimised.
pub(crate) const MOST: usize = 1000;
/// Stack of the threads that plan queries: [`MOST`] levels need less than half of it.
pub const STACK: usize = 16 << 20;

/// Operators and brackets of a query; 0 for text that is no SQL, of which the parser tells why.
pub(crate) fn operators(sql: &str) -> usize {
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().unwrap_or_default();
    tokens.iter().filter(|token| may_nest(token)).count()
}

/// Lists are flat, and literals and names are leaves.
fn may_nest(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::IS
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::BETWEEN
                | Keyword::CASE
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::JOIN
        ),
        Token::Whitespace(_)
        | Token::Comma
        | Token::Period
        | Token::SemiColon
        | Token::RParen
        | Token::RBracket
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::Placeholder(_)
        | Token::EOF => false,
        _ => true,
    }
}
