//! A hash that is the same in every version and on every machine, which a hasher of the standard
//! library does not promise. For numbers that must be found again, not for security.

/// [`hash64`], folded to 32 bits.
pub(crate) fn hash32(parts: &[&str]) -> u32 {
    let [a, b, c, d, e, f, g, h] = hash64(parts).to_be_bytes();
    u32::from_be_bytes([a ^ e, b ^ f, c ^ g, d ^ h])
}

/// FNV-1a over the parts.
pub(crate) fn hash64(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
