//! Why some tests take more than 20 s. A test that is not here and takes that long is named at the end of a run.

/// An executable as a report calls it, the beginning of a test's name, and why it takes long.
type Reason = (&'static str, &'static str, &'static str);

const REASONS: &[Reason] = &[
    (
        "plexus-testkit crash",
        "",
        "an agent dies at each place, and starts again each time",
    ),
    (
        "plexus-testkit up_podman",
        "",
        "each process is killed while containers come and go",
    ),
    (
        "plexus lab",
        "routes::",
        "networks are refused one after the other, and each time nodes must not have got a route",
    ),
    (
        "plexus scenarios",
        "",
        "things go wrong many times on three nodes, and each time it waits until all is well again",
    ),
    (
        "plexus lab_cli",
        "diagnose::away",
        "the API server counts a node as away after its lease ran out",
    ),
    (
        "plexus lab_cli",
        "diagnose::",
        "each answer needs a fault of its own on the lab",
    ),
    ("plexus lab_cli", "kernel::", "it boots virtual machines"),
    (
        "plexus lab_cli",
        "verbs::",
        "it goes through the commands of a page of the book one after the other",
    ),
    (
        "plexus-kubekit cli",
        "",
        "kubelets and agents come and go, and a node counts as away after its lease ran out",
    ),
    (
        "plexus-kubekit networks",
        "",
        "networks go once every node has said so, and whereabouts takes seconds for an address",
    ),
    (
        "plexus-kubekit disturbances",
        "",
        "a cluster of its own comes up, and each scenario waits until it has settled",
    ),
    ("plexus-kubekit multus", "", "a cluster of its own comes up"),
    (
        "plexus-kubekit variants",
        "",
        "a cluster of its own comes up",
    ),
];

/// Why a test takes long, if that is known. A run in parts has its arguments in its name.
pub(super) fn reason(executable: &str, test: &str) -> Option<&'static str> {
    let fits = |(of, begins, _): &&Reason| {
        let rest = executable.strip_prefix(*of);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            && test.starts_with(*begins)
    };
    REASONS.iter().find(fits).map(|(_, _, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_executable_have_its_reasons() {
        let crash = reason("plexus-testkit crash", "four::shim");
        assert!(crash.is_some());
        assert_eq!(
            reason("plexus-testkit crash --skip four", "one::shim"),
            crash
        );
        assert_eq!(reason("plexus-testkit crashes", "four::shim"), None);
    }
}
