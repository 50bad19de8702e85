//! Parameters written as `?`, as ODBC, JDBC and ADBC programs do: the engine knows `$1`, `$2`.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// The query with its `?` numbered from `$1`. Text that is no SQL comes back as it is: the parser tells why.
pub fn numbered(sql: &str) -> String {
    let Ok(mut tokens) = Tokenizer::new(&GenericDialect {}, sql).with_unescape(false).tokenize() else {
        return sql.to_owned();
    };
    let mut number = 0;
    for token in &mut tokens {
        if matches!(token, Token::Placeholder(text) if text == "?") {
            number += 1;
            *token = Token::Placeholder(format!("${number}"));
        }
    }
    if number == 0 {
        return sql.to_owned();
    }
    tokens.iter().map(ToString::to_string).collect()
}
