//! Connections that clients open: few enough that files for the daemon's own work are left, and not for those who say nothing.

use std::convert::Infallible;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Sleep;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Connections at once; more wait until one ends. A process may often have 1,024 files.
const MAX_CONNECTIONS: usize = 512;
/// How long a client may take for its first bytes, and for the TLS handshake.
pub(crate) const FIRST_WORDS: Duration = Duration::from_secs(20);
/// How HTTP/2 begins (RFC 9113 3.4); a TLS handshake is longer.
const PREFACE: usize = 24;
/// After connections could not be accepted: it is so for the next, too, until files are free again.
const PAUSE: Duration = Duration::from_millis(100);

/// Those of a socket that listens, as long as the stream is there.
pub(crate) fn incoming(listener: TcpListener) -> impl Stream<Item = Result<Connection, Infallible>> {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let accept = async {
            // It is never closed.
            while let Ok(place) = Arc::clone(&places).acquire_owned().await {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // Without it answers may wait for ACKs; nothing else is lost.
                        let _ = stream.set_nodelay(true);
                        if sender.send(Ok(Connection::new(stream, place))).await.is_err() {
                            return;
                        }
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
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
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes that are still to come in time, and until when.
    awaited: Option<(usize, Pin<Box<Sleep>>)>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    fn new(stream: TcpStream, place: OwnedSemaphorePermit) -> Self {
        Self {
            stream,
            awaited: Some((PREFACE, Box::pin(tokio::time::sleep(FIRST_WORDS)))),
            _place: place,
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
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
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, data)
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
