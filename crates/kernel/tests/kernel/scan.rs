use crate::lab::Lab;
use plexus_kernel::{Netns, scan};
use std::process::{Command, Stdio};

#[test]
fn finds_pinned_ones_and_those_of_processes_each_once() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let cookie = pod.netns.cookie().unwrap();
    let mut sleeper = Command::new("unshare")
        .args(["-n", "sleep", "30"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let own = format!("/proc/{}/ns/net", sleeper.id());
    let home = Netns::current().unwrap().inode().unwrap();
    for _ in 0..100 {
        if Netns::open(&own).is_ok_and(|ns| ns.inode().unwrap() != home) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let unnamed = Netns::open(&own).unwrap().cookie().unwrap();
    let found = scan::namespaces().found;
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let with = |cookie| {
        found
            .iter()
            .filter(|f| f.cookie == cookie)
            .collect::<Vec<_>>()
    };
    assert_eq!(with(cookie).len(), 1);
    assert_eq!(with(cookie)[0].path, pod.ns.path());
    assert_eq!(with(unnamed).len(), 1);
    assert_eq!(with(Netns::current().unwrap().cookie().unwrap()).len(), 1);
}

/// Told to the child, which is this program again in a process namespace of its own.
const HIDDEN: &str = "PLEXUS_TEST_SCAN_HIDDEN";

#[test]
fn a_process_that_does_not_see_all_others_says_so() {
    if std::env::var_os(HIDDEN).is_some() {
        assert!(!scan::namespaces().complete);
        assert!(plexus_kernel::mount::in_container());
        return;
    }
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "scan::a_process_that_does_not_see_all_others_says_so",
            "--exact",
        ])
        .env(HIDDEN, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}");
}
