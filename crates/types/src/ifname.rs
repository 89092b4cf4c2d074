//! The name of a network interface, by the kernel's own rule. Never looks whether it exists.

use crate::{Invalid, text_type};

/// 1 to 15 bytes, not `.` or `..`, without `/`, `:` or white space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IfName(String);

impl IfName {
    /// Checks the kernel's rule (`dev_valid_name`), and refuses control characters as well.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        let legal = (1..=15).contains(&text.len())
            && text != "."
            && text != ".."
            && !text
                .chars()
                .any(|c| c == '/' || c == ':' || c.is_whitespace() || c.is_control());
        if !legal {
            return Err(Invalid::new(
                "interface name",
                text,
                "use 1 to 15 bytes without '/', ':' or white space",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The node's end of the veth whose other end is `interface` of `container`, made by the call
    /// for `cni_ifname`: a hash, so that any number of them share the 15 bytes without clashing.
    pub fn host_end(container: &str, cni_ifname: &str, interface: &str) -> Self {
        let hash = crate::hash64(&[container, cni_ifname, interface]);
        Self(format!("px{:013x}", hash & 0xf_ffff_ffff_ffff))
    }
}

text_type!(IfName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_the_kernel_takes() {
        for name in [
            "eth0",
            "net1-0",
            "ens9f0np0.100",
            "a",
            "123456789012345",
            "tap@x",
        ] {
            assert_eq!(IfName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn refuses_what_the_kernel_refuses() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../x",
            "a b",
            "a:b",
            "1234567890123456",
            "a\0",
            "a\n",
        ] {
            let error = IfName::new(name).unwrap_err();
            assert!(error.to_string().contains("1 to 15 bytes"), "{error}");
        }
    }

    #[test]
    fn host_ends_fit_and_differ() {
        let long = "f".repeat(64);
        let one = IfName::host_end(&long, "eth0", "eth0");
        assert_eq!(one.as_str().len(), 15);
        assert_ne!(one, IfName::host_end(&long, "eth0", "eth1"));
        assert_ne!(one, IfName::host_end(&long, "eth1", "eth0"));
        assert_ne!(
            IfName::host_end("ab", "c", "d"),
            IfName::host_end("a", "bc", "d")
        );
    }
}
