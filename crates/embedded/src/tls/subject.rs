//! Who a certificate is for: its common name, and its organizations as groups. Reads just enough of
//! DER; that the certificate is good has been checked before.

use crate::reviews::User;
use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const OID: u8 = 0x06;
const VERSION: u8 = 0xa0;
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The user that a certificate names.
pub(crate) fn user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (outer, _) = element(certificate.as_ref(), SEQUENCE)?;
    let (signed, _) = element(outer, SEQUENCE)?;
    let rest = element(signed, VERSION).map_or(signed, |(_, rest)| rest);
    let (_, rest) = element(rest, INTEGER)?;
    let (_, rest) = element(rest, SEQUENCE)?;
    let (_issuer, rest) = element(rest, SEQUENCE)?;
    let (_validity, rest) = element(rest, SEQUENCE)?;
    let (mut subject, _) = element(rest, SEQUENCE)?;
    let mut user = User::default();
    while !subject.is_empty() {
        let (attribute, rest) = element(subject, SET)?;
        let (attribute, _) = element(attribute, SEQUENCE)?;
        let (kind, value) = element(attribute, OID)?;
        let (_, value, _) = any(value)?;
        let value = std::str::from_utf8(value).ok()?.to_owned();
        match kind {
            COMMON_NAME => user.name = value,
            ORGANIZATION => user.groups.push(value),
            _ => {}
        }
        subject = rest;
    }
    user.groups.push("system:authenticated".to_owned());
    (!user.name.is_empty()).then_some(user)
}

/// The content of an element of this type, and what comes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any(bytes)?;
    (found == tag).then_some((content, rest))
}

/// Type and content of an element, and what comes after it.
fn any(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, bytes) = bytes.split_first()?;
    let (first, bytes) = bytes.split_first()?;
    let (length, bytes) = match first {
        short @ 0..=0x7f => (usize::from(*short), bytes),
        long @ 0x81..=0x84 => {
            let (digits, bytes) = bytes.split_at_checked(usize::from(long & 0x7f))?;
            let length = digits
                .iter()
                .fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            (length, bytes)
        }
        _ => return None,
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((*tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::user;
    use crate::tls::Authority;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    fn signed(name: &str, group: &str) -> CertificateDer<'static> {
        let own = format!("plexus-subject-{}-{group}", std::process::id());
        let position = std::env::temp_dir().join(own);
        std::fs::create_dir_all(&position).unwrap();
        let signed = Authority::open(&position).and_then(|authority| authority.client(name, group));
        let _ = std::fs::remove_dir_all(&position);
        let (certificate, _) = signed.unwrap();
        CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()
    }

    #[test]
    fn a_certificate_names_its_user() {
        let found = user(&signed("admin", "system:masters")).unwrap();
        assert_eq!(found.name, "admin");
        assert_eq!(found.groups, ["system:masters", "system:authenticated"]);
    }

    #[test]
    fn what_is_cut_or_bent_names_nobody_and_does_no_harm() {
        let whole = signed("admin", "x");
        let bytes = whole.as_ref().to_vec();
        for end in 0..bytes.len() {
            let _ = user(&CertificateDer::from(bytes[..end].to_vec()));
        }
        for position in 0..bytes.len() {
            let mut bent = bytes.clone();
            bent[position] ^= 0xff;
            let _ = user(&CertificateDer::from(bent));
        }
        assert!(user(&CertificateDer::from(bytes[..40].to_vec())).is_none());
    }
}
