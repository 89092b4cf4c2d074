//! Reading answers: only the attributes that are needed, and without a word about the others, so
//! that a newer kernel or an exotic link cannot make an observation fail.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The attributes of a payload, as (kind without flags, value). Stops at the first one that does
/// not fit.
pub(crate) fn attributes(payload: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        let header = rest.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & 0x3fff;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A `u16` in the machine's byte order; 0 if it is not two bytes.
pub(crate) fn u16_of(value: &[u8]) -> u16 {
    value.try_into().map(u16::from_ne_bytes).unwrap_or_default()
}

/// A `u32` in the machine's byte order; 0 if it is not four bytes.
pub(crate) fn u32_of(value: &[u8]) -> u32 {
    value.try_into().map(u32::from_ne_bytes).unwrap_or_default()
}

/// Text, up to the first zero byte.
pub(crate) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|b| *b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// An address of four or sixteen bytes.
pub(crate) fn ip(value: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(value) {
        return Some(IpAddr::V4(Ipv4Addr::from(v4)));
    }
    <[u8; 16]>::try_from(value)
        .ok()
        .map(|v6| IpAddr::V6(Ipv6Addr::from(v6)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_lengths_end_the_list() {
        for bytes in [
            &[0_u8][..],
            &[0, 0, 1, 0],
            &[3, 0, 1, 0],
            &[255, 255, 1, 0, 9],
            &[4, 0, 1],
        ] {
            assert_eq!(attributes(bytes).count(), 0, "{bytes:?}");
        }
    }

    #[test]
    fn padding_and_flags_are_dropped() {
        let bytes = [5, 0, 1, 0x80, 7, 0, 0, 0, 6, 0, 2, 0, 8, 9];
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read, [(1, &[7_u8][..]), (2, &[8, 9])]);
    }

    #[test]
    fn values_of_the_wrong_size() {
        assert_eq!(
            (u16_of(&[1]), u32_of(&[1, 2]), ip(&[1, 2, 3])),
            (0, 0, None)
        );
        assert_eq!(text(b"eth0\0junk"), "eth0");
        assert_eq!(text(&[0xff, b'a']), "\u{fffd}a");
    }
}
