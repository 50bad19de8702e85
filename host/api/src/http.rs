//! Addresses beside that of gRPC, which speak HTTP: the same may call them, over the same TLS.

use std::future::pending;
use std::io;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::access::{Access, Token};
use crate::incoming::{Connection, incoming};

/// Connections at once. A browser opens six.
const MAX_CONNECTIONS: usize = 128;

/// A socket that listens.
pub struct Listener {
    connections: ReceiverStream<Result<Connection, std::convert::Infallible>>,
}

impl Listener {
    /// With the TLS of `access`, if it has any.
    pub fn new(listener: TcpListener, access: &Access) -> Self {
        Self {
            connections: incoming(listener, access.identity.as_ref(), MAX_CONNECTIONS),
        }
    }
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = ();

    async fn accept(&mut self) -> (Connection, ()) {
        match self.connections.next().await {
            Some(Ok(connection)) => (connection, ()),
            // The runtime ends.
            None => pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Answers to those only who send the token of `access`, if it has one: by itself, or as the password of any user, as browsers ask for it.
pub fn guarded<S: Clone + Send + Sync + 'static>(router: Router<S>, access: &Access) -> Router<S> {
    match access.token.clone() {
        Some(token) => router.layer(middleware::from_fn_with_state(token, guard)),
        None => router,
    }
}

async fn guard(State(token): State<Token>, headers: HeaderMap, request: Request, next: Next) -> Response {
    if headers
        .get(AUTHORIZATION)
        .is_some_and(|given| token.is_in(given.as_bytes()))
    {
        return next.run(request).await;
    }
    let asked = [(
        WWW_AUTHENTICATE,
        HeaderValue::from_static("Basic realm=\"weir\", charset=\"UTF-8\""),
    )];
    let text =
        "the token of this daemon is asked for: as the password of any user, or as authorization: Bearer TOKEN\n";
    (StatusCode::UNAUTHORIZED, asked, text).into_response()
}
