//! A hash that is the same in every version and on every machine, which a hasher of the standard library
//! does not promise. For names and numbers that must be found again, not for security.

/// FNV-1a over the parts, with a separator.
pub fn hash64(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::hash64;

    #[test]
    fn it_never_changes() {
        assert_eq!(hash64(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash64(&["router", "a"]), hash64(&["router", "a"]));
        assert_ne!(hash64(&["ab", "c"]), hash64(&["a", "bc"]));
    }
}
