//! Who may call: TLS, and a token that clients send.

use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq;
use tonic::service::Interceptor;
use tonic::transport::Identity;
use tonic::{Request, Status};

use crate::status;

/// Shortest token: what is shorter can be found by trying.
const SHORTEST_TOKEN: usize = 16;

/// How the header begins (RFC 6750 2.1).
const SCHEME: &[u8] = b"Bearer ";

/// Who may call the services. Without anything, whoever reaches the address.
#[derive(Clone, Default)]
pub struct Access {
    /// Certificate chain and key of the server: TLS.
    pub identity: Option<Identity>,
    /// What clients send as `authorization: Bearer TOKEN`.
    pub token: Option<Token>,
}

// Secrets are no matter for logs.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("tls", &self.identity.is_some())
            .field("token", &self.token.is_some())
            .finish()
    }
}

/// A token that can stand in a header.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl Token {
    /// From the text of a file; white space around it is none of it.
    ///
    /// # Errors
    /// Why it is none, for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let token = text.trim();
        if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "a token has {SHORTEST_TOKEN} letters, digits and signs or more in one line (openssl rand -hex 32 makes one)"
            ));
        }
        Ok(Self(token.into()))
    }

    /// The value of the header `authorization`.
    pub fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

/// Lets calls with the token through; all of them, if there is none.
#[derive(Clone)]
pub(crate) struct Guard(pub Option<Token>);

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(token) = &self.0 else { return Ok(request) };
        let given = request.metadata().get("authorization");
        let given = given.and_then(|value| {
            // RFC 9110 11.1: the name of the scheme is of either case.
            let (scheme, given) = value.as_bytes().split_at_checked(SCHEME.len())?;
            scheme.eq_ignore_ascii_case(SCHEME).then_some(given)
        });
        let is_it = given.is_some_and(|given| bool::from(given.ct_eq(token.0.as_bytes())));
        if is_it { Ok(request) } else { Err(status::no_token()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_line_that_cannot_be_guessed() {
        assert!(Token::parse("0123456789abcdef\n").is_ok());
        for wrong in ["", "\n", "0123456789abcde", "0123456789 abcdef", "0123456789abcdeé"] {
            assert!(Token::parse(wrong).is_err(), "{wrong:?}");
        }
        let token = Token::parse("0123456789abcdef").ok();
        let access = Access {
            token,
            ..Access::default()
        };
        assert_eq!(format!("{access:?}"), "Access { tls: false, token: true }");
    }
}
