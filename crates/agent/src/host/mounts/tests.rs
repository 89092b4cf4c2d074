//! A host and a container, each a mount namespace of its own: what the check says is compared with
//! what really propagates.

use super::*;
use crate::host::atomic_file::tests::Scratch;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A host with one container. Both end with their processes, and their mounts with them.
struct Lab {
    scratch: Scratch,
    host: Child,
    container: u32,
}

impl Lab {
    /// `steps` are the container's last mounts; `$H` is the host's root, `$C` the container's.
    fn new(steps: &str) -> Self {
        let scratch = Scratch::new("mounts");
        let script = format!(
            r#"set -e
cd "$DIR"; mkdir -p host container
mount -t tmpfs host host; mount --make-shared host
mkdir -p host/run/netns host/run/plexus
export H="$DIR/host" C="$DIR/container"
unshare -m --propagation unchanged sh -c '
  set -e
  mount -t tmpfs container "$C"; mount --make-private "$C"
  mkdir -p "$C/run/netns" "$C/run/plexus" "$C/host"
  {steps}
  echo $$ > "$DIR/pid.new"; mv "$DIR/pid.new" "$DIR/pid"
  exec sleep 600' &
wait"#
        );
        let host = Command::new("unshare")
            .args(["-m", "--propagation", "private", "sh", "-c", &script])
            .env("DIR", &scratch.0)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut lab = Self {
            scratch,
            host,
            container: 0,
        };
        let pid = lab.scratch.join("pid");
        let until = Instant::now() + Duration::from_secs(20);
        while !pid.exists() {
            assert!(Instant::now() < until, "the container did not start");
            assert!(lab.host.try_wait().unwrap().is_none(), "the host ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = fs::read_to_string(&pid).unwrap();
        lab.container = text.trim().parse().unwrap();
        lab
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.scratch.join("container").join(path)
    }

    fn table(&self, pid: u32) -> Table {
        Table::read(Path::new(&format!("/proc/{pid}/mountinfo"))).unwrap()
    }

    fn problems(&self) -> Vec<Problem> {
        let resolved = |path: PathBuf| (path.clone(), Some(path));
        let root = self.inside("host");
        // The lab's own root: the container's paths are the host's with another beginning.
        let needs = Needs {
            from_host: vec![resolved(self.inside("run/netns"))],
            host_root: Some(resolved(root)),
            to_host: resolved(self.inside("run/plexus")),
        };
        needs.problems(&self.table(self.container))
    }

    fn mount_in(&self, pid: u32, path: &Path) {
        let pid = pid.to_string();
        let path = path.to_str().unwrap();
        let script = format!("mkdir -p {path} && mount -t tmpfs pin {path}");
        let status = Command::new("nsenter")
            .args(["-t", &pid, "-m", "sh", "-c", &script])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// What really happens: host → container, host → host's root in the container, container → host.
    fn reality(&self) -> (bool, bool, bool) {
        let host = self.scratch.join("host");
        self.mount_in(self.host.id(), &host.join("run/netns/pin"));
        self.mount_in(self.container, &self.inside("run/plexus/routers"));
        let at = |pid, path: PathBuf| {
            let table = self.table(pid);
            table
                .covering(&path)
                .is_some_and(|mount| mount.point == path)
        };
        (
            at(self.container, self.inside("run/netns/pin")),
            at(self.container, self.inside("host/run/netns/pin")),
            at(self.host.id(), host.join("run/plexus/routers")),
        )
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.container)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let _ = self.host.kill();
        let _ = self.host.wait();
    }
}

const ROOT: &str = r#"mount --rbind "$H" "$C/host"; mount --make-rslave "$C/host""#;
const NETNS_SLAVE: &str =
    r#"mount --bind "$H/run/netns" "$C/run/netns"; mount --make-slave "$C/run/netns""#;
const PLEXUS: &str = r#"mount --bind "$H/run/plexus" "$C/run/plexus""#;

#[test]
fn as_the_manifest_says() {
    let lab = Lab::new(&format!("{ROOT}; {NETNS_SLAVE}; {PLEXUS}"));
    assert_eq!(lab.problems(), []);
    assert_eq!(lab.reality(), (true, true, true));
}

#[test]
fn without_propagation_all_three_are_named() {
    let lab = Lab::new(&format!(
        r#"{ROOT}; mount --make-rprivate "$C/host"; {NETNS_SLAVE}; mount --make-private "$C/run/netns"; {PLEXUS}; mount --make-slave "$C/run/plexus""#
    ));
    let expected = [
        Problem::NotFromHost(lab.inside("run/netns")),
        Problem::NotFromHost(lab.inside("host")),
        Problem::NotToHost(lab.inside("run/plexus")),
    ];
    assert_eq!(lab.problems(), expected);
    assert_eq!(lab.reality(), (false, false, false));
}

#[test]
fn shared_with_nobody_is_not_shared() {
    let lab = Lab::new(&format!(
        r#"{ROOT}; {NETNS_SLAVE}; {PLEXUS}; mount --make-slave "$C/run/plexus"; mount --make-shared "$C/run/plexus""#
    ));
    assert_eq!(
        lab.problems(),
        [Problem::NotToHost(lab.inside("run/plexus"))]
    );
    assert_eq!(lab.reality(), (true, true, false));
}

#[test]
fn what_is_not_mounted_at_all() {
    let lab = Lab::new(ROOT);
    let expected = [
        Problem::NotFromHost(lab.inside("run/netns")),
        Problem::NotToHost(lab.inside("run/plexus")),
    ];
    assert_eq!(lab.problems(), expected);
    assert_eq!(lab.reality(), (false, true, false));
}

#[test]
fn the_error_has_the_line_for_the_manifest() {
    let error = MountError::Wrong(vec![
        Problem::NotFromHost("/run/netns".into()),
        Problem::NotToHost("/run/plexus".into()),
        Problem::Missing("/var/run/netns".into()),
    ])
    .to_string();
    for said in [
        "`mountPropagation: HostToContainer`",
        "`mountPath: /run/netns`",
        "`mountPropagation: Bidirectional`",
        "`mountPath: /run/plexus`",
        "/var/run/netns is missing",
    ] {
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_pin_is_gone_only_where_it_would_be_seen() {
    let scratch = Scratch::new("pins");
    let receives = Table::own()
        .unwrap()
        .covering(&fs::canonicalize(&scratch.0).unwrap())
        .is_some_and(Mount::receives);
    assert_eq!(pin_gone(&scratch.join("cni-1")), receives);
    fs::write(scratch.join("cni-1"), "").unwrap();
    assert!(!pin_gone(&scratch.join("cni-1")), "the file is there");
    assert!(
        !pin_gone(&scratch.join("absent/cni-1")),
        "its directory is not"
    );
    assert!(!pin_gone(Path::new("/")));
    assert!(!pin_gone(Path::new("")));
}
