use crate::lab::Lab;
use plexus_kernel::{Netns, NetnsError, Socket, observe};

#[test]
fn paths_that_are_no_network_namespace() {
    let missing = Netns::open("/run/netns/px-no-such").unwrap_err();
    assert!(missing.is_gone(), "{missing}");
    for path in ["/etc/hostname", "/run", "/dev/null", "/proc/self/stat"] {
        let error = Netns::open(path).unwrap_err();
        assert!(
            matches!(error, NetnsError::NotNamespace { .. }),
            "{path}: {error}"
        );
        assert!(error.to_string().contains("propagation"), "{error}");
    }
    for (path, kind) in [
        ("/proc/self/ns/mnt", "mount"),
        ("/proc/self/ns/pid", "pid"),
        ("/proc/self/ns/user", "user"),
    ] {
        let error = Netns::open(path).unwrap_err().to_string();
        assert!(error.contains(&format!("is a {kind} namespace")), "{error}");
    }
}

#[test]
fn a_fifo_does_not_hold_anyone_up() {
    let path = std::env::temp_dir().join(format!("px-fifo-{}", std::process::id()));
    plexus_testkit::run("mkfifo", &[path.to_str().unwrap()]);
    let error = Netns::open(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(error, NetnsError::NotNamespace { .. }), "{error}");
}

#[test]
fn cookies_tell_namespaces_apart_and_paths_do_not() {
    let lab = Lab::new();
    let mut pod = lab.pod("one");
    let (cookie, inode) = (pod.netns.cookie().unwrap(), pod.netns.inode().unwrap());
    assert_eq!(
        Netns::open(pod.ns.path()).unwrap().cookie().unwrap(),
        cookie
    );
    assert_eq!(Netns::open(pod.ns.path()).unwrap().inode().unwrap(), inode);
    assert_ne!(lab.side.netns().cookie().unwrap(), cookie);
    pod.ns.replace();
    assert_ne!(
        Netns::open(pod.ns.path()).unwrap().cookie().unwrap(),
        cookie
    );
    // The one that we hold is still the old one.
    assert_eq!(pod.netns.cookie().unwrap(), cookie);
}

#[test]
fn a_panic_inside_comes_home() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let home = Netns::current().unwrap().cookie().unwrap();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pod.netns.enter(|| panic!("inside"))
    }));
    assert!(result.is_err());
    assert_eq!(Netns::current().unwrap().cookie().unwrap(), home);
}

#[test]
fn a_socket_stays_where_it_was_opened() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    pod.ns.sh("ip link add here type bridge");
    let mut socket = Socket::open_in(&pod.netns).unwrap();
    assert!(
        observe::link_by_name(&mut socket, "here")
            .unwrap()
            .is_some()
    );
    assert!(
        observe::link_by_name(&mut socket, "eth1")
            .unwrap()
            .is_none()
    );
    assert!(
        observe::link_by_name(&mut socket, "a-name-that-is-much-too-long")
            .unwrap()
            .is_none()
    );
    assert!(observe::link_by_name(&mut socket, "").unwrap().is_none());
}

#[test]
fn a_dump_of_many_links_is_whole() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let lines: String = (0..300)
        .map(|i| format!("link add b{i} type bridge\n"))
        .collect();
    pod.ns.ip(&lines);
    let mut socket = Socket::open_in(&pod.netns).unwrap();
    assert_eq!(observe::links(&mut socket).unwrap().len(), 301);
    let all = observe::observe(&mut socket, observe::What::ALL).unwrap();
    assert_eq!(all.links.len(), 301);
}

#[test]
fn the_default_routes_link() {
    let lab = Lab::new();
    let found = lab
        .side
        .with_socket(observe::default_route_link)
        .unwrap()
        .unwrap();
    assert_eq!(found.name, "eth1");
    let pod = lab.pod("one");
    let mut socket = Socket::open_in(&pod.netns).unwrap();
    assert_eq!(observe::default_route_link(&mut socket).unwrap(), None);
}
