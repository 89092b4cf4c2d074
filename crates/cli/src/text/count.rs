//! Numbers of addresses: those of IPv6 subnets have more digits than anyone reads.

/// More is shown as a power of two.
const PLAIN: u128 = 10_000_000;

/// A number, the nearest power of two if it is large: `65533`, `~2^80`.
pub fn count(number: u128) -> String {
    if number < PLAIN {
        return number.to_string();
    }
    let bits = number.ilog2();
    let nearest = match number >> (bits - 1) {
        0b11 => bits + 1,
        _ => bits,
    };
    format!("~2^{nearest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_powers() {
        for (number, expected) in [
            (0, "0"),
            (9_999_999, "9999999"),
            (16_777_213, "~2^24"),
            (i64::MAX as u128, "~2^63"),
            (1_208_925_819_614_629_174_771_707, "~2^80"),
            (u128::MAX, "~2^128"),
        ] {
            assert_eq!(count(number), expected);
        }
    }
}
