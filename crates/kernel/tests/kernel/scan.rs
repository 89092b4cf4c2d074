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
