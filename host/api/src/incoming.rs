//! Connections that clients open: few enough that files for the daemon's own work are left, and not for those who say nothing.

use std::convert::Infallible;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, Sleep, timeout};
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::either::Either;
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::tls::Identity;

/// How long a client may take for its first bytes, and for the TLS handshake before them.
pub(crate) const FIRST_WORDS: Duration = Duration::from_secs(20);
/// How HTTP/2 begins (RFC 9113 3.4). A request of HTTP/1.1 is hardly shorter.
const PREFACE: usize = 24;
/// Silence after which the system asks whether a client is still there.
const VANISHED: Duration = Duration::from_secs(60);
/// After connections could not be accepted: it is so for the next, too, until files are free again.
const PAUSE: Duration = Duration::from_millis(100);

/// Those of a socket that listens, as long as the stream is there: `most` at once, more wait until one ends. (A process may
/// often have 1,024 files.)
pub(crate) fn incoming(
    listener: TcpListener,
    identity: Option<&Identity>,
    most: usize,
) -> ReceiverStream<Result<Connection, Infallible>> {
    let places = Arc::new(Semaphore::new(most));
    let acceptor = identity.map(Identity::acceptor);
    let keepalive = TcpKeepalive::new().with_time(VANISHED).with_interval(VANISHED / 6);
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let accept = async {
            // It is never closed.
            while let Ok(place) = Arc::clone(&places).acquire_owned().await {
                let stream = match listener.accept().await {
                    Ok((stream, _)) => stream,
                    Err(_) => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                };
                // Without it answers may wait for ACKs; nothing else is lost.
                let _ = stream.set_nodelay(true);
                // And without this one that vanished keeps its place.
                let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
                let Some(acceptor) = acceptor.clone() else {
                    if sender
                        .send(Ok(Connection::new(Either::Left(stream), place)))
                        .await
                        .is_err()
                    {
                        return;
                    }
                    continue;
                };
                // Nobody waits for another's handshake.
                let sender = sender.clone();
                tokio::spawn(async move {
                    if let Ok(Ok(stream)) = timeout(FIRST_WORDS, acceptor.accept(stream)).await {
                        // Otherwise the server has ended.
                        let _ = sender.send(Ok(Connection::new(Either::Right(stream), place))).await;
                    }
                });
            }
        };
        tokio::select! {
            () = accept => {}
            () = sender.closed() => {}
        }
    });
    ReceiverStream::new(receiver)
}

/// One of them.
pub struct Connection {
    stream: Either<TcpStream, TlsStream<TcpStream>>,
    /// Bytes that are still to come in time, and until when.
    awaited: Option<(usize, Pin<Box<Sleep>>)>,
    /// How long nothing may be read or written, and until when.
    idle: Option<(Duration, Pin<Box<Sleep>>)>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    fn new(stream: Either<TcpStream, TlsStream<TcpStream>>, place: OwnedSemaphorePermit) -> Self {
        Self {
            stream,
            awaited: Some((PREFACE, Box::pin(tokio::time::sleep(FIRST_WORDS)))),
            idle: None,
            _place: place,
        }
    }

    /// It ends when nothing was read or written for so long.
    pub(crate) fn not_idle_for(mut self, most: Duration) -> Self {
        self.idle = Some((most, Box::pin(tokio::time::sleep(most))));
        self
    }

    /// After reading or writing: `moved` if it was ready for it.
    fn look_idle(&mut self, moved: bool, context: &mut Context<'_>) -> io::Result<()> {
        if let Some((most, until)) = &mut self.idle {
            if moved {
                until.as_mut().reset(Instant::now() + *most);
            } else if until.as_mut().poll(context).is_ready() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    fn tcp(&self) -> &TcpStream {
        match &self.stream {
            Either::Left(stream) => stream,
            Either::Right(stream) => stream.get_ref().0,
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.tcp().connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let came = buffer.filled().len() - before;
        if let Some((missing, until)) = &mut self.awaited {
            *missing = missing.saturating_sub(came);
            if *missing == 0 {
                self.awaited = None;
            } else if until.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        self.look_idle(read.is_ready(), context)?;
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, data);
        self.look_idle(written.is_ready(), context)?;
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, data);
        self.look_idle(written.is_ready(), context)?;
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;

    /// Of gRPC and of HTTP: both take their connections here.
    #[tokio::test]
    async fn the_system_asks_whether_a_silent_client_is_still_there() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut connections = incoming(listener, None, 1);
        let connection = connections.next().await.unwrap().unwrap();
        let socket = SockRef::from(connection.tcp());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), VANISHED);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), VANISHED / 6);
        drop(client);
    }
}
