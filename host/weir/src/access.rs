//! Certificates and tokens, from files: of a daemon by its options, of its clients by the environment.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig};
use tonic::{Request, Status};
use weir_api::access::{Access, Token};
use weir_api::tls::{Identity, Unusable};
use weir_command::Failure;

use crate::cli::AccessOptions;
use crate::say;

/// Names of files for clients: what the daemon's certificate is checked against, and the token.
const CA: &str = "WEIR_CA";
const TOKEN: &str = "WEIR_TOKEN_FILE";

/// As the options say.
pub fn of(options: &AccessOptions) -> Result<Access, Failure> {
    let identity = match (&options.tls_cert, &options.tls_key) {
        (Some(certificate), Some(key)) => {
            let made = Identity::from_pem(&read("--tls-cert", certificate)?, &read("--tls-key", key)?);
            Some(made.map_err(|error| Failure::new(unusable(certificate, key, &error)))?)
        }
        _ => None,
    };
    let token = options.token_file.as_deref().map(|path| token("--token-file", path));
    let token = token.transpose()?;
    Ok(Access { identity, token })
}

/// Which file is wrong, and how.
pub fn unusable(certificate: &Path, key: &Path, error: &Unusable) -> String {
    let (certificate, key) = (certificate.display(), key.display());
    match error {
        Unusable::Certificate(_) => format!("--tls-cert {certificate}: {error}"),
        Unusable::Key(_) => format!("--tls-key {key}: {error}"),
        Unusable::Pair(_) => format!("--tls-cert {certificate} and --tls-key {key}: {error}"),
    }
}

/// How links to HTTP addresses begin.
pub fn scheme(access: &Access) -> &'static str {
    if access.identity.is_some() { "https" } else { "http" }
}

/// What whoever starts a daemon on these addresses should know.
pub fn open_to(addresses: impl IntoIterator<Item = IpAddr>, access: &Access) -> Option<&'static str> {
    match (&access.identity, &access.token) {
        _ if addresses.into_iter().all(|address| address.is_loopback()) => None,
        (_, None) => {
            Some("whoever reaches this address may ask: --token-file says who may, --tls-cert and --tls-key hide what")
        }
        (None, Some(_)) => {
            Some("the token and all answers cross the network in the clear: --tls-cert and --tls-key hide them")
        }
        (Some(_), Some(_)) => None,
    }
}

/// TLS of a client: the system's roots, or those of a file.
pub fn tls() -> Result<ClientTlsConfig, Failure> {
    Ok(match named(CA) {
        Some(path) => {
            let path: &Path = path.as_ref();
            let roots = read(CA, path)?;
            let is_pem = String::from_utf8_lossy(&roots).contains("-----BEGIN CERTIFICATE-----");
            if !is_pem {
                return Err(Failure::new(format_args!(
                    "{CA} {}: no certificate in PEM is in it",
                    path.display()
                )));
            }
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(roots))
        }
        None => ClientTlsConfig::new().with_native_roots(),
    })
}

/// Sends the token with each call, if there is one.
#[derive(Clone)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl Bearer {
    /// For this address.
    pub fn of_environment(url: &str) -> Result<Self, Failure> {
        let Some(path) = named(TOKEN) else {
            return Ok(Self(None));
        };
        let host = url.strip_prefix("http://");
        if host.is_some_and(|host| !["127.", "localhost", "[::1]"].iter().any(|own| host.starts_with(own))) {
            say::line(format_args!(
                "weir: {url}: the token crosses the network in the clear; https:// hides it"
            ));
        }
        let mut header: MetadataValue<Ascii> = token(TOKEN, path.as_ref())?.header().parse().map_err(Failure::new)?;
        header.set_sensitive(true);
        Ok(Self(Some(header)))
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = &self.0 {
            request.metadata_mut().insert("authorization", header.clone());
        }
        Ok(request)
    }
}

fn named(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|path| !path.is_empty())
}

/// The token of the file that an option or a variable names.
fn token(named_by: &str, path: &Path) -> Result<Token, Failure> {
    let token = parse_token(path, &read(named_by, path)?);
    token.map_err(|error| Failure::new(format_args!("{named_by} {error}")))
}

/// The token that a file of these bytes has.
pub fn parse_token(path: &Path, bytes: &[u8]) -> Result<Token, String> {
    Token::parse(&String::from_utf8_lossy(bytes)).map_err(|error| format!("{}: {error}", path.display()))
}

/// The bytes of the file that an option or a variable names.
fn read(named_by: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::new(format_args!("{named_by} {}: {error}", path.display())))
}
