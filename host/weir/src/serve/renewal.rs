//! Certificate, key and token of a daemon, read again when their files change.

use std::path::Path;

use weir_api::access::Access;

use crate::access;
use crate::cli::AccessOptions;

/// The bytes of a file, or why they cannot be read; `None`: there is no such file among the options, or it can be read only once.
type Text = Option<Result<Vec<u8>, String>>;

/// Looks at the files now and then.
pub struct Renewal {
    options: AccessOptions,
    access: Access,
    /// Certificate, key and token that were used or refused.
    used: [Text; 3],
    /// Those of the last look.
    seen: [Text; 3],
}

impl Renewal {
    /// Of what was read from these files just now; `None` where there are none.
    pub fn new(options: &AccessOptions, access: &Access) -> Option<Self> {
        let used = texts(options);
        used.iter().any(Option::is_some).then(|| Self {
            options: options.clone(),
            access: access.clone(),
            seen: used.clone(),
            used,
        })
    }

    /// What has changed and was the same at the last look (who writes two files does not write them at once) is used: what was
    /// done, or why it was not.
    pub fn look(&mut self) -> Vec<Result<String, String>> {
        let seen = std::mem::replace(&mut self.seen, texts(&self.options));
        if seen != self.seen || seen == self.used {
            return Vec::new();
        }
        let used = std::mem::replace(&mut self.used, seen);
        let mut told = Vec::new();
        if used[..2] != self.used[..2] {
            told.push(self.renew_identity());
        }
        if used[2] != self.used[2] {
            told.push(self.renew_token());
        }
        told
    }

    fn renew_identity(&self) -> Result<String, String> {
        let (Some(path), Some(key_path), Some(identity)) =
            (&self.options.tls_cert, &self.options.tls_key, &self.access.identity)
        else {
            return Err("there was no certificate at the start".to_owned());
        };
        let [certificate, key, _] = &self.used;
        identity
            .renew(bytes(certificate)?, bytes(key)?)
            .map_err(|error| access::unusable(path, key_path, &error))?;
        Ok(format!(
            "the certificate of {} is that for new connections",
            path.display()
        ))
    }

    fn renew_token(&self) -> Result<String, String> {
        let (Some(path), Some(token)) = (&self.options.token_file, &self.access.token) else {
            return Err("there was no token at the start".to_owned());
        };
        token.renew(&access::parse_token(path, bytes(&self.used[2])?)?);
        Ok(format!("the token of {} is that for new calls", path.display()))
    }
}

fn texts(options: &AccessOptions) -> [Text; 3] {
    [&options.tls_cert, &options.tls_key, &options.token_file].map(|path| path.as_deref().and_then(text))
}

fn text(path: &Path) -> Text {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    match std::fs::metadata(path) {
        // What comes through a pipe comes once.
        Ok(file) if !file.is_file() => None,
        Ok(_) => Some(std::fs::read(path).map_err(failed)),
        Err(error) => Some(Err(failed(error))),
    }
}

fn bytes(text: &Text) -> Result<&[u8], String> {
    match text {
        Some(Ok(bytes)) => Ok(bytes),
        Some(Err(error)) => Err(error.clone()),
        None => Err("certificate, key or token is no regular file any more".to_owned()),
    }
}
