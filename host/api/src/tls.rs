//! TLS of the daemon's addresses.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// What connections carry (RFC 7301), the better first: gRPC is HTTP/2.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Certificate chain and key of the server. Clones are one: what renews one of them renews all.
#[derive(Clone)]
pub struct Identity {
    config: Arc<ServerConfig>,
    shown: Arc<Shown>,
}

/// Why a certificate and a key cannot be used, for the user, who knows the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// There is no certificate in the first file.
    Certificate(String),
    /// There is no key in the second file that can be used.
    Key(String),
    /// They do not belong together, or the certificate is none.
    Pair(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(why) | Self::Key(why) | Self::Pair(why) => f.write_str(why),
        }
    }
}

impl Identity {
    /// From the texts of two PEM files.
    ///
    /// # Errors
    /// Why they are none.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, Unusable> {
        let shown = Arc::new(Shown(RwLock::new(pair(certificate, key)?)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Unusable::Pair(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&shown) as Arc<_>);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Self {
            config: Arc::new(config),
            shown,
        })
    }

    /// Show these to connections from now on; those that are open stay as they are.
    ///
    /// # Errors
    /// Why they cannot be used: what was shown before is shown on.
    pub fn renew(&self, certificate: &[u8], key: &[u8]) -> Result<(), Unusable> {
        let pair = pair(certificate, key)?;
        *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = pair;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

/// What the next connection is shown.
#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn pair(certificate: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, Unusable> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| Unusable::Certificate(format!("the PEM is damaged: {error}")))?;
    if chain.is_empty() {
        return Err(Unusable::Certificate(
            "there is no certificate in it: in PEM, it stands between BEGIN CERTIFICATE and END CERTIFICATE (openssl x509 -inform der makes that of DER)"
                .to_owned(),
        ));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
        let is_locked = key.windows(9).any(|word| word == b"ENCRYPTED");
        Unusable::Key(match error {
            rustls::pki_types::pem::Error::NoItemsFound if is_locked => {
                "the key has a password, which nobody could give at a start: openssl pkey -in FILE -out PLAIN writes it without"
                    .to_owned()
            }
            rustls::pki_types::pem::Error::NoItemsFound => {
                "there is no private key in it: in PEM, it stands between BEGIN PRIVATE KEY and END PRIVATE KEY".to_owned()
            }
            error => format!("the PEM is damaged: {error}"),
        })
    })?;
    let provider = default_provider();
    let key = provider.key_provider.load_private_key(key).map_err(|error| {
        Unusable::Key(format!(
            "the key is of no kind that can be used (RSA, ECDSA, Ed25519): {error}"
        ))
    })?;
    let pair = CertifiedKey::new(chain, key);
    match pair.keys_match() {
        // Not every kind of key tells.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(Arc::new(pair)),
        Err(rustls::Error::InconsistentKeys(_)) => Err(Unusable::Pair(
            "the key is not that of the certificate (the server's comes first, then those up to the root)".to_owned(),
        )),
        Err(error) => Err(Unusable::Pair(format!("the certificate cannot be used: {error}"))),
    }
}
