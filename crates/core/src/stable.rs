//! A hash that is the same in every version and on every machine. For numbers that must be found again, not
//! for security.

pub(crate) use plexus_types::hash64;

/// [`hash64`], folded to 32 bits.
pub(crate) fn hash32(parts: &[&str]) -> u32 {
    let [a, b, c, d, e, f, g, h] = hash64(parts).to_be_bytes();
    u32::from_be_bytes([a ^ e, b ^ f, c ^ g, d ^ h])
}
