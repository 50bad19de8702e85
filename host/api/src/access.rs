//! Who may call: TLS, and a token that clients send. The same for all addresses of a daemon.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::status;
use crate::tls::Identity;

/// Shortest token: what is shorter can be found by trying.
const SHORTEST_TOKEN: usize = 16;

/// How the header begins with a token by itself (RFC 6750 2.1), and with one as a password (RFC 7617 2).
const BEARER: &[u8] = b"Bearer ";
const BASIC: &[u8] = b"Basic ";

/// Who may call. Without anything, whoever reaches the address.
#[derive(Clone, Default)]
pub struct Access {
    /// Certificate chain and key of the server: TLS.
    pub identity: Option<Identity>,
    /// What clients send.
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

/// A token that can stand in a header. Clones are one: what renews one of them renews all.
#[derive(Clone)]
pub struct Token(Arc<RwLock<Box<str>>>);

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
        Ok(Self(Arc::new(RwLock::new(token.into()))))
    }

    /// Another one is asked for from now on; calls that are answered already go on.
    pub fn renew(&self, other: &Self) {
        let text = other.text().clone();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(&self) -> RwLockReadGuard<'_, Box<str>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of the header `authorization`.
    pub fn header(&self) -> String {
        format!("Bearer {}", self.text())
    }

    /// Whether a header `authorization` brings the token: by itself, or, as browsers do, as the password of any user.
    pub(crate) fn is_in(&self, header: &[u8]) -> bool {
        let text = self.text();
        let is_it = |given: &[u8]| bool::from(given.ct_eq(text.as_bytes()));
        if let Some(given) = of_scheme(header, BEARER) {
            return is_it(given);
        }
        let user = of_scheme(header, BASIC).and_then(|given| STANDARD.decode(given.trim_ascii()).ok());
        user.is_some_and(|user| {
            let mut parts = user.splitn(2, |byte| *byte == b':');
            parts.nth(1).is_some_and(is_it)
        })
    }
}

/// What follows the name of a scheme, which is of either case (RFC 9110 11.1).
fn of_scheme<'a>(header: &'a [u8], scheme: &[u8]) -> Option<&'a [u8]> {
    let (name, given) = header.split_at_checked(scheme.len())?;
    name.eq_ignore_ascii_case(scheme).then_some(given)
}

/// Lets calls with the token through; all of them, if there is none.
#[derive(Clone)]
pub(crate) struct Guard(pub Option<Token>);

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(token) = &self.0 else { return Ok(request) };
        let given = request.metadata().get("authorization");
        if given.is_some_and(|given| token.is_in(given.as_bytes())) {
            Ok(request)
        } else {
            Err(status::no_token())
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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

    #[test]
    fn a_token_that_is_renewed_is_so_for_all_who_ask_for_it() {
        let token = Token::parse("0123456789abcdef").unwrap();
        let asked = token.clone();
        token.renew(&Token::parse("fedcba9876543210").unwrap());
        assert!(asked.is_in(b"Bearer fedcba9876543210") && !asked.is_in(b"Bearer 0123456789abcdef"));
    }

    #[test]
    fn a_token_comes_by_itself_or_as_a_password() {
        let token = Token::parse("0123456789abcdef").unwrap();
        let basic = |user: &str| format!("Basic {}", STANDARD.encode(user));
        for right in [
            "Bearer 0123456789abcdef",
            "bearer 0123456789abcdef",
            &basic(":0123456789abcdef"),
            &basic("me:0123456789abcdef"),
        ] {
            assert!(token.is_in(right.as_bytes()), "{right}");
        }
        for wrong in [
            "",
            "0123456789abcdef",
            "Bearer",
            "Bearer 0123456789abcdeg",
            "Bearer 0123456789abcde",
            "Basic 0123456789abcdef",
            "Basic",
            &basic("0123456789abcdef"),
            &basic("0123456789abcdef:"),
            &basic("me:you:0123456789abcdef"),
        ] {
            assert!(!token.is_in(wrong.as_bytes()), "{wrong}");
        }
    }
}
