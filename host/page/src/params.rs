//! The parameters of a request: each is taken by name, and what nobody took is an error.

use std::fmt::Display;
use std::str::FromStr;

use crate::error::Refused;
use crate::span::{LONGEST, Span};

/// Most bytes of a text.
const TEXT: usize = 16_384;

/// What is left to take.
#[derive(Debug, Default)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// As they came; each name once.
    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, Refused> {
        for (number, (name, value)) in pairs.iter().enumerate() {
            if pairs[..number].iter().any(|(before, _)| before == name) {
                return Err(Refused::invalid(format_args!("{name}: given more than once")));
            }
            if value.len() > TEXT {
                return Err(Refused::invalid(format_args!("{name}: longer than {TEXT} bytes")));
            }
        }
        Ok(Self(pairs))
    }

    /// The text of a parameter; an empty one is as none.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(place).1).filter(|text| !text.is_empty())
    }

    /// A number between two others.
    pub fn number<T: FromStr + PartialOrd + Display + Copy>(
        &mut self,
        name: &str,
        default: T,
        least: T,
        most: T,
    ) -> Result<T, Refused> {
        Ok(self.optional(name, least, most)?.unwrap_or(default))
    }

    /// The same without a default.
    pub fn optional<T: FromStr + PartialOrd + Display + Copy>(
        &mut self,
        name: &str,
        least: T,
        most: T,
    ) -> Result<Option<T>, Refused> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.parse::<T>() {
            // A number that is none compares with nothing.
            Ok(number) if number >= least && number <= most => Ok(Some(number)),
            _ => Err(Refused::invalid(format_args!(
                "{name}: {} is not a number from {least} to {most}",
                shown(&text)
            ))),
        }
    }

    /// One of some words; the first is the default.
    pub fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<T, Refused> {
        let Some(text) = self.text(name) else {
            return Ok(words[0].1);
        };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(*value),
            None => {
                // A default without a word cannot be asked for.
                let all: Vec<_> = words
                    .iter()
                    .map(|(word, _)| *word)
                    .filter(|word| !word.is_empty())
                    .collect();
                Err(Refused::invalid(format_args!(
                    "{name}: {} is none of {}",
                    shown(&text),
                    all.join(", ")
                )))
            }
        }
    }

    /// Words between commas.
    pub fn list(&mut self, name: &str) -> Option<Vec<String>> {
        let text = self.text(name)?;
        Some(text.split(',').map(|word| word.trim().to_owned()).collect())
    }

    /// `from` and `to`, or those of `whole`.
    pub fn span(&mut self, whole: Span) -> Result<Span, Refused> {
        let from = self.optional("from", 0.0, LONGEST)?;
        let to = self.optional("to", 0.0, LONGEST)?;
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        let to = to.map(nanos);
        // Where only the end is given, and all of that is gone, there is a range all the same.
        let from = from.map_or_else(|| whole.from.min(to.map_or(u64::MAX, |to| to.saturating_sub(1))), nanos);
        let to = to.unwrap_or_else(|| whole.to.max(from.saturating_add(1)));
        Span::new(from, to).ok_or_else(|| {
            Refused::invalid(format_args!(
                "from, to: {} is not below {}",
                from as f64 / 1e9,
                to as f64 / 1e9
            ))
        })
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), Refused> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Refused::invalid(format_args!(
                "{}: there is no such parameter here; docs/src/page-api.md lists them",
                shown(name)
            ))),
        }
    }
}

/// What was sent, short whatever it was.
pub fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    format!("{short:?}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        Params::new(text.split('&').map(pair).collect()).unwrap()
    }

    #[test]
    fn numbers_are_checked() {
        assert_eq!(params("width=7").number("width", 1024, 1, 4096), Ok(7));
        assert_eq!(params("a=1").number("width", 1024, 1, 4096), Ok(1024));
        for wrong in ["0", "4097", "-1", "x", "1e3", "99999999999999999999"] {
            let error = params(&format!("width={wrong}")).number("width", 1024, 1, 4096);
            let message = error.unwrap_err().to_string();
            assert!(
                message.starts_with("width: ") && message.contains("1 to 4096"),
                "{message}"
            );
        }
        for wrong in ["NaN", "inf", "-0.1", "1e300"] {
            params(&format!("from={wrong}"))
                .span(Span { from: 0, to: 10 })
                .unwrap_err();
        }
    }

    #[test]
    fn ranges_are_not_empty() {
        let span = params("from=0.5&to=1.5").span(Span { from: 0, to: 10 }).unwrap();
        assert_eq!((span.from, span.to), (500_000_000, 1_500_000_000));
        assert_eq!(
            params("a=1").span(Span { from: 0, to: 10 }),
            Ok(Span { from: 0, to: 10 })
        );
        params("from=1&to=1").span(Span { from: 0, to: 10 }).unwrap_err();
        params("from=2&to=1").span(Span { from: 0, to: 10 }).unwrap_err();
        // Behind the end nothing is, but it is a range.
        params("from=2").span(Span { from: 0, to: 10 }).unwrap();
    }

    #[test]
    fn a_word_that_is_none_is_told_those_that_are() {
        let words = [("", None), ("client", Some(0)), ("server", Some(1))];
        assert_eq!(params("side=server").word("side", &words), Ok(Some(1)));
        let error = params("side=x").word("side", &words).unwrap_err().to_string();
        assert_eq!(error, "side: \"x\" is none of client, server");
    }

    #[test]
    fn what_nobody_takes_is_an_error() {
        let mut p = params("a=1&b=2");
        p.text("a");
        assert!(p.end().unwrap_err().to_string().contains("\"b\""));
        let twice = vec![("a".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())];
        Params::new(twice).unwrap_err();
    }
}
