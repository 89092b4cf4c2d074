//! Until when a certificate is good.

use super::der::{any, validity_and_rest};
use rustls::pki_types::CertificateDer;

/// Years with two digits are of this century below 50 (RFC 5280, 4.1.2.5.1).
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Its last day: year, month, day.
pub(super) fn last_day(certificate: &CertificateDer<'_>) -> Option<(i64, u8, u8)> {
    let (validity, _) = validity_and_rest(certificate)?;
    let (_, _, rest) = any(validity)?;
    let (kind, time, _) = any(rest)?;
    let text = std::str::from_utf8(time).ok()?;
    let (year, rest) = match kind {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let month = rest.get(..2)?.parse().ok()?;
    let day = rest.get(2..4)?.parse().ok()?;
    Some((year, month, day))
}
