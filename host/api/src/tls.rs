//! TLS of the daemon's addresses.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// What connections carry (RFC 7301), the better first: gRPC is HTTP/2.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Certificate chain and key of the server.
#[derive(Clone)]
pub struct Identity(Arc<ServerConfig>);

impl Identity {
    /// From the texts of two PEM files.
    ///
    /// # Errors
    /// Why they are none, for the user.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, String> {
        let unusable = |cause: &dyn fmt::Display| {
            format!("certificate or key cannot be used: {cause}; both are PEM files, the key without a password")
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| unusable(&error))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable(&error))?;
        Self::new(chain, key).map_err(|error| unusable(&error))
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}
