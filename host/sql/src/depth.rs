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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_flat_and_operators_are_not() {
        let ids: Vec<_> = (0..5000).map(|id| id.to_string()).collect();
        let list = format!("SELECT count(*) FROM connections WHERE id IN ({})", ids.join(", "));
        assert!(operators(&list) < 10, "{}", operators(&list));
        assert_eq!(operators(&ids.join("+")), 4999);
        assert_eq!(operators(&ids.join(" OR a = ")), 2 * 4999);
        assert_eq!(operators("SELECT '1+1+1' -- 1+1"), 0);
    }
}
