//! Addresses beside that of gRPC, which speak HTTP: the same may call them, over the same TLS.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_stream::StreamExt as _;

use crate::access::{Access, Token};
use crate::incoming::{FIRST_WORDS, incoming};

/// Connections at once. A browser opens six.
const MAX_CONNECTIONS: usize = 128;

/// How long clients may do nothing: all of them have to share [`MAX_CONNECTIONS`].
#[derive(Clone, Copy)]
struct Patience {
    /// Until the head of the next request is whole.
    head: Duration,
    /// Without a byte either way. Streams of changes have one each 15 s; answers take less.
    idle: Duration,
}

const PATIENCE: Patience = Patience {
    head: FIRST_WORDS,
    idle: Duration::from_secs(300),
};

/// Answer on a socket that listens, with the TLS of `access` if it has any, until this is dropped.
pub async fn serve(listener: TcpListener, router: Router, access: &Access) {
    serve_within(PATIENCE, listener, router, access).await;
}

async fn serve_within(patience: Patience, listener: TcpListener, router: Router, access: &Access) {
    let mut connections = incoming(listener, access.identity.as_ref(), MAX_CONNECTIONS);
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head);
    while let Some(Ok(connection)) = connections.next().await {
        let stream = TokioIo::new(connection.not_idle_for(patience.idle));
        let service = TowerToHyperService::new(router.clone());
        let builder = builder.clone();
        tokio::spawn(async move {
            // Nobody is left to be told of an error.
            let _ = builder.serve_connection(stream, service).await;
        });
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Instant;

    use axum::body::Bytes;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    /// HTTP/2's preface and empty settings.
    const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

    async fn server(patience: Patience) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // More than sockets hold.
        let much = Bytes::from(vec![0; 32 << 20]);
        let router = Router::new()
            .route("/", get(|| async { "answer" }))
            .route("/much", get(|| async move { much }));
        tokio::spawn(async move { serve_within(patience, listener, router, &Access::default()).await });
        address
    }

    /// Fill all places with clients that send this and do no more; then one that asks is to be answered.
    async fn lazy(patience: Patience, said: &[u8]) {
        let address = server(patience).await;
        let begin = Instant::now();
        let mut lazy = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(said).await.unwrap();
            lazy.push(stream);
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        let mut answer = [0; 12];
        let read = timeout(Duration::from_secs(15), stream.read_exact(&mut answer)).await;
        read.expect("the lazy ones hold all places").unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        // They were not just refused.
        assert!(begin.elapsed() >= SHORT, "{:?}", begin.elapsed());
    }

    const LONG: Duration = Duration::from_secs(3600);
    const SHORT: Duration = Duration::from_millis(500);

    #[tokio::test]
    async fn clients_that_do_not_end_their_request_hold_no_place() {
        let patience = Patience {
            head: SHORT,
            idle: LONG,
        };
        lazy(patience, b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ").await;
    }

    #[tokio::test]
    async fn clients_that_ask_once_and_stay_hold_no_place() {
        lazy(
            Patience {
                head: SHORT,
                idle: LONG,
            },
            REQUEST,
        )
        .await;
    }

    #[tokio::test]
    async fn clients_of_http2_that_ask_nothing_hold_no_place() {
        lazy(
            Patience {
                head: LONG,
                idle: SHORT,
            },
            HTTP2,
        )
        .await;
    }

    #[tokio::test]
    async fn clients_that_do_not_read_hold_no_place() {
        let patience = Patience {
            head: LONG,
            idle: SHORT,
        };
        lazy(patience, b"GET /much HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    }
}
