//! Numbers that nobody can guess: identities, and the ends of generated names.

use rustls::crypto::ring;

/// So many random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .is_err()
    {
        // The kernel has no randomness to give: a machine on which nothing else works either.
        tracing::error!("no randomness: what is made now may not be unique");
    }
    bytes
}

/// A new identity: a random UUID (version 4).
pub(crate) fn uuid() -> String {
    let mut bytes = bytes::<16>();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    let (a, rest) = hex.split_at(8);
    let (b, rest) = rest.split_at(4);
    let (c, rest) = rest.split_at(4);
    let (d, e) = rest.split_at(4);
    format!("{a}-{b}-{c}-{d}-{e}")
}

#[cfg(test)]
mod tests {
    use super::uuid;

    #[test]
    fn an_identity_is_a_random_uuid() {
        let (one, two) = (uuid(), uuid());
        assert_ne!(one, two);
        assert_eq!(one.len(), 36);
        assert_eq!(one.as_bytes()[14], b'4');
        assert!("89ab".contains(char::from(one.as_bytes()[19])));
    }
}
