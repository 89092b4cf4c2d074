//! Plugins in another root: a directory with nothing but busybox, as a container sees the host's.
//! The test is its own helper: called with the word for it, it enters the root and becomes the plugin,
//! so that it needs a `main` of its own.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod common;

use common::Dir;
use common::bench::{Bench, one, script_file};
use plexus_cni::delegate::{self, Cause, Root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, root, plugin] = args.as_slice()
        && word == delegate::IN_ROOT
    {
        let error = delegate::enter_root_and_exec(Path::new(root), Path::new(plugin));
        eprintln!("{}", delegate::complaint(&error));
        return ExitCode::from(delegate::NOT_EXECUTED);
    }
    let tests: [(&str, fn()); 6] = [
        (
            "a_plugin_sees_the_hosts_files",
            a_plugin_sees_the_hosts_files,
        ),
        (
            "links_lead_where_they_lead_there",
            links_lead_where_they_lead_there,
        ),
        (
            "what_cannot_be_executed_says_so",
            what_cannot_be_executed_says_so,
        ),
        (
            "ourselves_in_there_are_refused",
            ourselves_in_there_are_refused,
        ),
        ("one_that_hangs_is_killed", one_that_hangs_is_killed),
        (
            "one_that_outlived_its_agent_is_ended",
            one_that_outlived_its_agent_is_ended,
        ),
    ];
    for (name, test) in tests {
        let begun = Instant::now();
        test();
        eprintln!("test {name} ... ok ({} ms)", begun.elapsed().as_millis());
    }
    ExitCode::SUCCESS
}

/// A root with busybox in it, and a runner for what is there. The bench's own directories are not.
struct Host {
    root: Dir,
    bench: Bench,
}

const ANSWER: &str =
    r#"echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/n"}],"ips":[]}'"#;

impl Host {
    fn new(change: impl Fn(&mut delegate::Options)) -> Self {
        let root = Dir::new();
        for directory in ["bin", "opt/cni/bin", "tmp"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        let busybox = ["/bin/busybox", "/usr/bin/busybox"];
        let busybox = busybox.iter().find(|path| Path::new(path).exists());
        let busybox = busybox.unwrap_or_else(|| panic!("busybox is missing: see make setup"));
        fs::copy(busybox, root.join("bin/sh")).unwrap();
        fs::hard_link(root.join("bin/sh"), root.join("bin/sleep")).unwrap();
        let dir = root.0.clone();
        let bench = Bench::with(|options| {
            options.plugin_dirs = vec!["/opt/cni/bin".into()];
            options.root = Some(Root {
                dir: dir.clone(),
                helper: std::env::current_exe().unwrap(),
            });
            change(options);
        });
        Self { root, bench }
    }

    fn plugin(&self, name: &str, part: &str) {
        let script = format!(
            "#!/bin/sh\nif [ \"$CNI_COMMAND\" = VERSION ]; then echo '{{\"supportedVersions\":[\"1.0.0\"]}}'; exit 0; fi\n{part}\n"
        );
        script_file(&self.root.join("opt/cni/bin").join(name), &script);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }
}

fn a_plugin_sees_the_hosts_files() {
    let host = Host::new(|_| {});
    host.plugin(
        "good",
        &format!("read -r line; echo \"$line\" > /tmp/stdin; echo \"$PWD $PATH $CNI_PATH $CNI_NETNS $CNI_IFNAME\" > /tmp/env; {ANSWER}"),
    );
    let outcome = host.bench.add(&one("good"), 0, None).unwrap();
    assert_eq!(outcome.interfaces[0].name, "eth0");
    assert!(host.read("tmp/stdin").contains("\"name\":\"blue\""));
    let env = host.read("tmp/env");
    let words: Vec<&str> = env.split_whitespace().collect();
    assert_eq!(words[0], "/");
    assert!(words[1].contains("/usr/sbin"), "{env}");
    assert_eq!(words[2..], ["/opt/cni/bin", "/run/netns/x", "eth0"]);
    let runs = host.bench.runner.runs();
    assert!(
        runs.iter()
            .any(|r| (r.plugin.as_str(), r.verb, r.count) == ("good", "ADD", 1)),
        "{runs:?}"
    );
    assert_eq!(host.bench.runner.running(), 0);
}

fn links_lead_where_they_lead_there() {
    let host = Host::new(|_| {});
    host.plugin("real", ANSWER);
    let bin = host.root.join("opt/cni/bin");
    fs::create_dir_all(host.root.join("nix/store")).unwrap();
    fs::rename(bin.join("real"), host.root.join("nix/store/real")).unwrap();
    std::os::unix::fs::symlink("/nix/store/real", bin.join("linked")).unwrap();
    host.bench.add(&one("linked"), 0, None).unwrap();
    // A link out of the root leads nowhere, though the file is there for us.
    std::os::unix::fs::symlink(
        "../../../../../../../../../usr/bin/env",
        bin.join("escapes"),
    )
    .unwrap();
    let error = host.bench.fail(&one("escapes"));
    assert!(error.msg.contains("no executable file"), "{error}");
}

fn what_cannot_be_executed_says_so() {
    let host = Host::new(|_| {});
    script_file(&host.root.join("opt/cni/bin/junk"), "\x7fELF nonsense");
    script_file(&host.root.join("opt/cni/bin/lost"), "#!/bin/absent\n");
    for name in ["junk", "lost"] {
        let error = host.bench.add(&one(name), 0, None).unwrap_err();
        assert!(matches!(error.cause, Cause::Spawn(..)), "{error:?}");
        let text = error.to_cni().msg;
        assert!(text.contains(&format!("/opt/cni/bin/{name}")), "{text}");
    }
    // A plugin's own failure with that exit code stays its own.
    host.plugin("odd", "echo mine >&2; exit 126");
    let text = host.bench.fail(&one("odd")).msg;
    assert!(text.contains("126") && text.contains("mine"), "{text}");
    let gone = Host::new(|options| {
        if let Some(root) = &mut options.root {
            root.dir = PathBuf::from("/absent");
        }
    });
    assert!(
        gone.bench
            .fail(&one("junk"))
            .msg
            .contains("no executable file")
    );
}

fn ourselves_in_there_are_refused() {
    let host = Host::new(|options| options.own = vec!["/opt/cni/bin/plexus-cni".into()]);
    let bin = host.root.join("opt/cni/bin");
    script_file(&bin.join("plexus-cni"), "#!/bin/sh\nexit 0\n");
    fs::copy(bin.join("plexus-cni"), bin.join("bridge")).unwrap();
    for name in ["plexus-cni", "bridge"] {
        assert!(
            host.bench.fail(&one(name)).msg.contains("Plexus itself"),
            "{name}"
        );
    }
}

fn one_that_hangs_is_killed() {
    let host = Host::new(|options| options.timeout = Duration::from_millis(700));
    host.plugin("hangs", "echo $$ > /tmp/pid; sleep 1234; true");
    let begun = Instant::now();
    let text = host.bench.fail(&one("hangs")).msg;
    assert!(text.contains("killed"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let pid = host.read("tmp/pid");
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

/// As an agent that is killed leaves it: the lock is held through both programs.
fn one_that_outlived_its_agent_is_ended() {
    let host = Host::new(|_| {});
    host.plugin("stays", "echo $$ > /tmp/pid; sleep 1000; true");
    let spool = host.bench.dir.join("spool");
    fs::create_dir_all(&spool).unwrap();
    let file = fs::File::create(spool.join("77-0.stdin")).unwrap();
    file.lock().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut stray = command
        .args([
            delegate::IN_ROOT,
            host.root.0.to_str().unwrap(),
            "/opt/cni/bin/stays",
        ])
        .stdin(Stdio::from(file))
        .spawn()
        .unwrap();
    drop(command);
    let until = Instant::now() + Duration::from_secs(10);
    while !host.root.join("tmp/pid").exists() {
        assert!(Instant::now() < until, "the plugin did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        delegate::end_strays(&spool, Duration::from_millis(100)).unwrap(),
        1
    );
    assert!(!stray.wait().unwrap().success());
}
