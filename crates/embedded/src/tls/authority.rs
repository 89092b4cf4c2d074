//! The authority that signs. Its key is kept; its name never changes, so that what was signed once
//! stays good.

use super::{TlsError, client_verifier};
use crate::directory::KEY;
use crate::{clock, private};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use std::path::Path;
use std::time::Duration;

/// Never to be changed: it is in every certificate that was signed.
const AUTHORITY: &str = "plexus-ca";
const SERVER: &str = "plexus";
/// How long the authority and its server are good, counted from today, or from here if the clock says that
/// today is earlier: a clock that was never set begins in 1970 and is set while we run.
const YEARS: i64 = 20;
/// How long a client is. On a clock that was never set nobody can tell when a year is over: clients are good for as
/// long as the authority then, and get a year when the server starts on a better clock.
const CLIENT_YEARS: i64 = 1;
const AT_LEAST: i64 = 2026;
/// They are good since then, or since yesterday on such a clock: clocks differ.
const SINCE: i64 = 2020;

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
        let path = directory.join(KEY);
        let failed = |source| TlsError::File {
            path: path.clone(),
            source,
        };
        private::close_to_others(&path).map_err(failed)?;
        let key = match std::fs::read_to_string(&path) {
            Ok(text) => KeyPair::from_pem(&text).map_err(|source| TlsError::Key {
                path: path.clone(),
                source,
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let key = KeyPair::generate().map_err(|source| certificate(AUTHORITY, source))?;
                private::write(&path, &key.serialize_pem()).map_err(failed)?;
                key
            }
            Err(error) => return Err(failed(error)),
        };
        let mut params = params(&[], AUTHORITY, None, YEARS)?;
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

    /// Whether a client's certificate is one of ours.
    pub(crate) fn has_signed(&self, certificate: &CertificateDer<'_>) -> bool {
        let mut roots = RootCertStore::empty();
        let now = u64::try_from(clock::seconds()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        roots.add(self.der()).is_ok()
            && client_verifier(roots)
                .is_ok_and(|verifier| verifier.verify_client_cert(certificate, &[], now).is_ok())
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
        let years = match purpose {
            ExtendedKeyUsagePurpose::ClientAuth => client_years(clock::seconds()),
            _ => YEARS,
        };
        let mut params = params(names, name, group, years)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let signed = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok((signed, key))
    }
}

fn params(
    names: &[String],
    name: &str,
    group: Option<&str>,
    years: i64,
) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(names).map_err(|source| certificate(name, source))?;
    let mut subject = DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let (first, last) = validity(clock::seconds(), years);
    params.not_before = date_time_ymd(first.0, first.1, first.2);
    params.not_after = date_time_ymd(last.0, last.1, last.2);
    Ok(params)
}

fn client_years(now: i64) -> i64 {
    match clock::date(now).0 < AT_LEAST {
        true => YEARS,
        false => CLIENT_YEARS,
    }
}

/// The first and the last day of a certificate that is made now.
fn validity(now: i64, years: i64) -> ((i32, u8, u8), (i32, u8, u8)) {
    let (year, month, day) = clock::date(now.saturating_sub(86_400));
    // The 29th of February has no anniversary.
    let day = day.min(28);
    let small = |year: i64| i32::try_from(year).unwrap_or(2025);
    let first = if year < SINCE {
        (small(year), month, day)
    } else {
        (small(SINCE), 1, 1)
    };
    let last = small(year.max(AT_LEAST) + years);
    (first, (last, month, day))
}

fn certificate(name: &str, source: rcgen::Error) -> TlsError {
    TlsError::Certificate {
        name: name.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::{CLIENT_YEARS, YEARS, client_years, validity};

    #[test]
    fn a_certificate_outlives_a_clock_that_is_set() {
        for now in [
            0,
            1_000_000_000,
            1_763_264_970,
            1_900_000_000,
            1_709_251_199,
        ] {
            let (first, last) = validity(now, YEARS);
            let (year, month, day) = crate::clock::date(now);
            let today = (i32::try_from(year).unwrap(), month, day);
            assert!(first < today && today < last, "{now}: {first:?} {last:?}");
            assert!(
                first < (2026, 1, 1) && last > (2045, 1, 1),
                "{now}: {last:?}"
            );
        }
    }

    #[test]
    fn a_client_is_good_for_a_year() {
        let november_2026 = 1_795_060_000;
        assert_eq!(client_years(november_2026), CLIENT_YEARS);
        let (_, last) = validity(november_2026, CLIENT_YEARS);
        assert_eq!(last, (2027, 11, 18));
        assert_eq!(client_years(0), YEARS, "a clock that was never set");
    }
}
