//! Certificates: an authority of our own, the server's certificate under it, and those of clients.
//! Owns the key of the authority, which stays in the server's directory; everything else can be made
//! again from it. Never decides what a client may do.

mod authority;
mod der;
mod kubeconfig;
mod lifetime;
mod reusable_client;
mod subject;

pub(crate) use authority::Authority;
pub(crate) use kubeconfig::Kubeconfig;
pub(crate) use reusable_client::reusable_client;
pub(crate) use subject::user;

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or written.
    #[error("cannot use {path}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A key in a file is none.
    #[error("{path} is not a private key: remove it, and all clients need a new kubeconfig")]
    Key {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rcgen::Error,
    },
    /// A certificate cannot be made.
    #[error("cannot make a certificate for {name}")]
    Certificate {
        /// For whom.
        name: String,
        /// The cause.
        #[source]
        source: rcgen::Error,
    },
    /// The TLS library refuses.
    #[error("cannot set TLS up")]
    Setup(#[source] rustls::Error),
}

/// What a server needs to speak TLS as one of `names`, to clients that the authority has signed and
/// to unauthenticated ones.
///
/// # Errors
/// A name is none, or the library refuses.
pub(crate) fn acceptor(authority: &Authority, names: &[String]) -> Result<TlsAcceptor, TlsError> {
    let (certificate, key) = authority.server(names)?;
    let mut roots = RootCertStore::empty();
    roots.add(authority.der()).map_err(TlsError::Setup)?;
    let verifier = client_verifier(roots)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)
        .map_err(TlsError::Setup)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Who checks clients' certificates; a client without one goes on as nobody.
fn client_verifier(roots: RootCertStore) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| TlsError::Setup(rustls::Error::General(error.to_string())))
}
