//! Who a certificate is for: its common name, and its organizations as groups. That the certificate is good
//! has been checked before.

use super::der::{OID, SEQUENCE, SET, any, element, validity_and_rest};
use crate::reviews::User;
use rustls::pki_types::CertificateDer;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The user that a certificate names.
pub(crate) fn user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, rest) = validity_and_rest(certificate)?;
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
