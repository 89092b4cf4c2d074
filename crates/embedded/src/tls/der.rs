//! Just enough of DER to read a certificate: its elements, and where its validity and its subject are.

use rustls::pki_types::CertificateDer;

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
pub(super) const OID: u8 = 0x06;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;

/// From when to when a certificate is good, and what comes after that: its subject first.
pub(super) fn validity_and_rest<'c>(
    certificate: &'c CertificateDer<'_>,
) -> Option<(&'c [u8], &'c [u8])> {
    let (outer, _) = element(certificate.as_ref(), SEQUENCE)?;
    let (signed, _) = element(outer, SEQUENCE)?;
    let rest = element(signed, VERSION).map_or(signed, |(_, rest)| rest);
    let (_, rest) = element(rest, INTEGER)?;
    let (_, rest) = element(rest, SEQUENCE)?;
    let (_issuer, rest) = element(rest, SEQUENCE)?;
    element(rest, SEQUENCE)
}

/// The content of an element of this type, and what comes after it.
pub(super) fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any(bytes)?;
    (found == tag).then_some((content, rest))
}

/// Type and content of an element, and what comes after it.
pub(super) fn any(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
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
