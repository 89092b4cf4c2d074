//! The authority that signs. Its key is kept; its name never changes, so that what was signed once
//! stays good.

use super::TlsError;
use super::kubeconfig::write_private;
use crate::clock;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;

/// Never to be changed: it is in every certificate that was signed.
const AUTHORITY: &str = "plexus-ca";
const SERVER: &str = "plexus";
const YEARS: i64 = 20;

/// Signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

impl Authority {
    /// The one of a directory; made if there is none.
    ///
    /// # Errors
    /// Its key cannot be read or written.
    pub(crate) fn open(directory: &Path) -> Result<Self, TlsError> {
        let path = directory.join("ca.key");
        let failed = |source| TlsError::File {
            path: path.clone(),
            source,
        };
        let key = match std::fs::read_to_string(&path) {
            Ok(text) => KeyPair::from_pem(&text).map_err(|source| TlsError::Key {
                path: path.clone(),
                source,
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let key = KeyPair::generate().map_err(|source| certificate(AUTHORITY, source))?;
                write_private(&path, &key.serialize_pem()).map_err(failed)?;
                key
            }
            Err(error) => return Err(failed(error)),
        };
        let mut params = params(&[], AUTHORITY, None)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let signed = params
            .self_signed(&key)
            .map_err(|source| certificate(AUTHORITY, source))?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate: signed,
        })
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// A certificate for a server that is called by these names and addresses.
    ///
    /// # Errors
    /// One of them is none.
    pub(crate) fn server(
        &self,
        names: &[String],
    ) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), TlsError> {
        let (signed, key) = self.sign(names, SERVER, None, ExtendedKeyUsagePurpose::ServerAuth)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok((signed.der().clone(), key.into()))
    }

    /// Certificate and key of a client, as PEM.
    ///
    /// # Errors
    /// The name is none.
    pub(crate) fn client(&self, name: &str, group: &str) -> Result<(String, String), TlsError> {
        let (signed, key) =
            self.sign(&[], name, Some(group), ExtendedKeyUsagePurpose::ClientAuth)?;
        Ok((signed.pem(), key.serialize_pem()))
    }

    fn sign(
        &self,
        names: &[String],
        name: &str,
        group: Option<&str>,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<(Certificate, KeyPair), TlsError> {
        let failed = |source| certificate(name, source);
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = params(names, name, group)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let signed = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok((signed, key))
    }
}

/// Valid since yesterday, as clocks differ.
fn params(
    names: &[String],
    name: &str,
    group: Option<&str>,
) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(names).map_err(|source| certificate(name, source))?;
    let mut subject = DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let (year, month, day) = clock::date(clock::seconds() - 86_400);
    // The 29th of February has no anniversary.
    let day = day.min(28);
    let date = |year: i64| {
        let year = i32::try_from(year).unwrap_or(2025);
        date_time_ymd(year, month, day)
    };
    params.not_before = date(year);
    params.not_after = date(year + YEARS);
    Ok(params)
}

fn certificate(name: &str, source: rcgen::Error) -> TlsError {
    TlsError::Certificate {
        name: name.to_owned(),
        source,
    }
}
