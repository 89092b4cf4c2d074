//! Names of labs' network namespaces, by which what is left of a lab is found without its records:
//! `px-LAB-fabric`, `px-LAB-n1` to `n200`, and `px-LAB-s` with 12 digits of a sandbox.

/// Nodes that a lab can have: more would need more than one byte of an address.
pub const MAX_LAB_NODES: u8 = 200;

/// Digits of a sandbox's id in the name of its namespace.
pub const SANDBOX_DIGITS: usize = 12;

/// The lab that a network namespace is of, by its name.
pub fn lab_of_namespace(namespace: &str) -> Option<&str> {
    let (lab, rest) = namespace.strip_prefix("px-")?.split_once('-')?;
    let is_lab = (1..=10).contains(&lab.len())
        && lab.starts_with(|first: char| first.is_ascii_lowercase())
        && lab
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    (is_lab && (rest == "fabric" || is_node(rest) || is_sandbox(rest))).then_some(lab)
}

fn is_node(name: &str) -> bool {
    let digits = name.strip_prefix('n').unwrap_or_default();
    let plain = !digits.starts_with(['0', '+']);
    plain
        && digits
            .parse::<u8>()
            .is_ok_and(|number| number <= MAX_LAB_NODES)
}

fn is_sandbox(name: &str) -> bool {
    let digits = name.strip_prefix('s').unwrap_or_default();
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == SANDBOX_DIGITS && digits.bytes().all(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_lab_makes() {
        for own in ["px-a-fabric", "px-a-n1", "px-a-n200", "px-a-s0123456789ab"] {
            assert_eq!(lab_of_namespace(own), Some("a"), "{own}");
        }
        for other in [
            "a-n1",
            "px-a",
            "px-a-",
            "px-a-n",
            "px-a-n0",
            "px-a-n01",
            "px-a-n+1",
            "px-a-n201",
            "px-a-n1-x",
            "px--n1",
            "px-1a-n1",
            "px-A-n1",
            "px-elevenchars-n1",
            "px-a-s0123",
            "px-a-s0123456789AB",
            "px-a-s0123456789abc",
            "px-a-4711-0",
        ] {
            assert_eq!(lab_of_namespace(other), None, "{other}");
        }
    }
}
