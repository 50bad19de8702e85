//! From words to a checked filter.

use super::fields::{Field, Kind, Step};
use super::lexer::{self, Operator, Token, Word};
use super::pattern::{Pattern, holds};
use super::target::{Target, names};
use super::test::{Number, Test};
use super::{FilterError, MAX_BYTES, Node};

/// Deepest nesting of parentheses and NOT.
const MAX_DEPTH: usize = 50;
/// Most restrictions in one filter: each is looked at for each message.
const MAX_RESTRICTIONS: usize = 200;
/// What people write behind a number, and a blank, for its unit.
const UNITS: [&str; 12] = [
    "ns", "us", "µs", "ms", "s", "sec", "second", "seconds", "m", "min", "minutes", "h",
];

pub(super) fn parse(filter: &str, schema: &'static [Field]) -> Result<Node, FilterError> {
    if filter.len() > MAX_BYTES {
        return Err(FilterError::new(
            filter,
            0,
            filter,
            format!("at most {MAX_BYTES} bytes"),
        ));
    }
    let tokens = lexer::split(filter)?;
    if tokens.is_empty() {
        return Ok(Node::All(Vec::new()));
    }
    let mut parser = Parser {
        filter,
        schema,
        tokens,
        next: 0,
        depth: 0,
        restrictions: 0,
    };
    let node = parser.expression()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.error("AND, OR or the end")),
    }
}

struct Parser<'a> {
    filter: &'a str,
    schema: &'static [Field],
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    restrictions: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Word> {
        self.tokens.get(self.next).map(|token| &token.word)
    }

    /// An error at the next word.
    fn error(&self, expected: impl Into<String>) -> FilterError {
        self.error_at(self.next, expected)
    }

    fn error_at(&self, index: usize, expected: impl Into<String>) -> FilterError {
        let (start, end) = self
            .tokens
            .get(index)
            .map_or((self.filter.len(), self.filter.len()), |token| (token.start, token.end));
        FilterError::new(self.filter, start, &self.filter[start..end], expected)
    }

    fn expression(&mut self) -> Result<Node, FilterError> {
        let mut nodes = vec![self.sequence()?];
        while self.peek() == Some(&Word::And) {
            self.next += 1;
            nodes.push(self.sequence()?);
        }
        Ok(one_or(nodes, Node::All))
    }

    fn sequence(&mut self) -> Result<Node, FilterError> {
        let mut nodes = vec![self.factor()?];
        while let Some(Word::Open | Word::Not | Word::Text(_) | Word::Literal { .. }) = self.peek() {
            nodes.push(self.factor()?);
        }
        Ok(one_or(nodes, Node::All))
    }

    fn factor(&mut self) -> Result<Node, FilterError> {
        let mut nodes = vec![self.term()?];
        while self.peek() == Some(&Word::Or) {
            self.next += 1;
            nodes.push(self.term()?);
        }
        Ok(one_or(nodes, Node::Any))
    }

    fn term(&mut self) -> Result<Node, FilterError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(format!("at most {MAX_DEPTH} levels of parentheses and NOT")));
        }
        self.depth += 1;
        let node = match self.peek() {
            Some(Word::Not) => {
                self.next += 1;
                Node::Not(Box::new(self.term()?))
            }
            Some(Word::Open) => {
                self.next += 1;
                let node = self.expression()?;
                if self.peek() != Some(&Word::Close) {
                    return Err(self.error("AND, OR or \")\""));
                }
                self.next += 1;
                node
            }
            _ => self.restriction()?,
        };
        self.depth -= 1;
        Ok(node)
    }

    fn restriction(&mut self) -> Result<Node, FilterError> {
        self.restrictions += 1;
        if self.restrictions > MAX_RESTRICTIONS {
            return Err(self.error(format!("at most {MAX_RESTRICTIONS} comparisons and texts")));
        }
        let first = self.next;
        let word = self.peek().cloned();
        self.next += 1;
        match word {
            Some(Word::Text(name)) => match self.peek().cloned() {
                Some(Word::Operator(operator)) => {
                    let target = self.target(first, &name)?;
                    self.next += 1;
                    self.comparison(target, operator)
                }
                _ => self.text(first, name),
            },
            Some(Word::Literal { pattern, .. }) => match self.peek() {
                Some(Word::Operator(_)) => Err(self.error("no comparison: field names are written without quotes")),
                _ => Ok(Node::Text(pattern.text())),
            },
            _ => Err(self.error_at(first, "a field, a text or \"(\"")),
        }
    }

    /// A text to look for. One that looks like a comparison of another language would only seem to select.
    fn text(&self, at: usize, text: String) -> Result<Node, FilterError> {
        let is_call = self.peek() == Some(&Word::Open) && self.tokens[at].end == self.tokens[self.next].start;
        if is_call {
            return Err(self.error_at(
                at,
                "a comparison: there are no functions; as a text it stands in quotes",
            ));
        }
        let before = at.checked_sub(1).map(|before| &self.tokens[before].word);
        let is_number = |pattern: &Pattern| pattern.plain().and_then(float).is_some();
        if let Some(Word::Literal { pattern, quoted: false }) = before
            && is_number(pattern)
            && UNITS.contains(&text.as_str())
        {
            let expected = "AND, OR or the end: a unit follows its number without a space (1.5s, 20ms, 300us, 2m); as a text it stands in quotes";
            return Err(self.error_at(at, expected));
        }
        let is_of_path = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let path = text.split(|c| !is_of_path(c)).next().unwrap_or_default();
        let first = path.split('.').next().unwrap_or_default();
        if self.target(at, first).is_ok() {
            let expected = format!("= or another comparison behind the field {first}; as a text it stands in quotes");
            return Err(self.error_at(at, expected));
        }
        Ok(Node::Text(text))
    }

    fn target(&self, at: usize, dotted: &str) -> Result<Target, FilterError> {
        Target::find(self.schema, dotted).map_err(|expected| self.error_at(at, expected))
    }

    /// The value behind an operator, and the test it makes.
    fn comparison(&mut self, target: Target, operator: Operator) -> Result<Node, FilterError> {
        let at = self.next;
        let Some(Word::Literal { pattern, quoted }) = self.peek().cloned() else {
            return Err(self.error("a value"));
        };
        self.next += 1;
        let Target {
            mut path,
            kind,
            repeated,
            name,
            in_map,
            values,
        } = target;

        if operator == Operator::Has && !quoted && pattern.is_any() {
            return Ok(Node::Field {
                path,
                test: Test::Present,
            });
        }
        if repeated && operator != Operator::Has {
            return Err(self.error_at(at - 1, format!("\":\": {name} is a list")));
        }
        let test = match kind {
            Kind::Map if in_map => {
                let number = number(&pattern, &name).map(|number| Box::new(Test::Number(operator, number)));
                Test::Either(number, Box::new(text(operator, pattern)))
            }
            Kind::Map if operator == Operator::Has => {
                path.push(Step::Key(pattern.text()));
                Test::Present
            }
            Kind::Map => return Err(self.error_at(at - 1, format!("\":\" and a name, or {name}.NAME"))),
            Kind::Message(schema) => {
                return Err(self.error_at(at - 1, format!(":* or a field of {name}: {}", names(schema))));
            }
            // An item of a list is compared whole.
            Kind::Text if repeated => Test::Matches(pattern, true),
            Kind::Text => {
                let possible = match operator {
                    Operator::Equal | Operator::NotEqual => values.iter().any(|value| pattern.matches(value)),
                    Operator::Has => values.iter().any(|value| holds(value, &pattern.text())),
                    _ => true,
                };
                // A text that is not known is empty.
                if !possible && !values.is_empty() && pattern.plain() != Some("") {
                    return Err(self.error_at(at, format!("one of {}", values.join(", "))));
                }
                text(operator, pattern)
            }
            Kind::Bool => match (operator, pattern.plain()) {
                (Operator::Equal | Operator::Has, Some(truth @ ("true" | "false"))) => Test::Bool(truth == "true"),
                (Operator::NotEqual, Some(truth @ ("true" | "false"))) => Test::Bool(truth == "false"),
                (Operator::Equal | Operator::Has | Operator::NotEqual, _) => {
                    return Err(self.error_at(at, "true or false"));
                }
                _ => return Err(self.error_at(at - 1, format!("= or !=: {name} is true or false"))),
            },
            Kind::Integer | Kind::Number => match number(&pattern, &name) {
                Some(number) => Test::Number(operator, number),
                None if is_duration(&name) => {
                    return Err(self.error_at(at, "seconds, or a time such as 1.5s, 20ms, 300us, 2m"));
                }
                None => return Err(self.error_at(at, "a number")),
            },
            Kind::Time => match pattern.plain().and_then(|text| text.parse().ok()) {
                Some(time) => Test::Time(operator, time),
                None => return Err(self.error_at(at, "an RFC 3339 time such as 2026-01-31T12:00:00Z")),
            },
        };
        Ok(Node::Field { path, test })
    }
}

fn one_or(mut nodes: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        Some(last) => {
            nodes.push(last);
            many(nodes)
        }
        None => many(nodes),
    }
}

fn text(operator: Operator, pattern: Pattern) -> Test {
    match operator {
        Operator::Equal => Test::Matches(pattern, true),
        Operator::NotEqual => Test::Matches(pattern, false),
        Operator::Has => Test::Holds(pattern.text()),
        _ => Test::Text(operator, pattern.text()),
    }
}

/// Fields in seconds take times with a unit.
fn is_duration(name: &str) -> bool {
    name.ends_with("seconds") || name.ends_with("Seconds")
}

fn number(pattern: &Pattern, name: &str) -> Option<Number> {
    let text = pattern.plain()?;
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Number::Integer(i128::from(integer)));
    }
    if let Ok(integer) = text.parse::<u64>() {
        return Some(Number::Integer(i128::from(integer)));
    }
    if let Some(float) = float(text) {
        return Some(Number::Float(float));
    }
    let units = [("ns", 1e9), ("us", 1e6), ("µs", 1e6), ("ms", 1e3), ("s", 1.0)];
    let long_units = [("m", 60.0), ("h", 3600.0)];
    let part = |unit: &str| text.strip_suffix(unit).and_then(float);
    let short = units
        .iter()
        .find_map(|(unit, per_second)| part(unit).map(|value| value / per_second));
    let seconds = short.or_else(|| {
        long_units
            .iter()
            .find_map(|(unit, seconds)| part(unit).map(|value| value * seconds))
    });
    seconds.filter(|_| is_duration(name)).map(Number::Float)
}

/// A decimal number; the names of infinity and of what is not a number are refused.
fn float(text: &str) -> Option<f64> {
    let decimal = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse().ok().filter(|float: &f64| decimal && float.is_finite())
}
