//! A lab for one test, and what the machine shows of it.

use plexus_testkit::{PLEXUS, SHIM, bin, exchange, failed, within};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longer than anything healthy takes on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A lab, removed when dropped.
pub(crate) struct Lab {
    name: String,
}

impl Lab {
    /// A name that no other run and no other test has; makes nothing.
    pub(crate) fn named(letter: char) -> Self {
        static USED_NAMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let process = std::process::id();
        let own = |more: char| format!("{letter}{process}{more}");
        let names = std::iter::once(format!("{letter}{process}")).chain(('a'..='z').map(own));
        let mut taken = USED_NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let name = names.into_iter().find(|name| taken.insert(name.clone()));
        let name = name.expect("a name is left");
        Self { name }
    }

    /// A lab that is up.
    pub(crate) fn up(letter: char, nodes: u8) -> Self {
        let lab = Self::named(letter);
        let nodes = nodes.to_string();
        lab.ok(&["up", "--nodes", &nodes, "--nics", "1", "--node-grace", "2"]);
        lab
    }

    /// The kubeconfig that gets the lab's context: never that of whoever runs the test.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        std::env::temp_dir().join(format!("plexus-lab-kubeconfig-{}", self.name))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `plexus lab …`, not started yet.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.plexus(&["lab"]);
        command.args(words);
        command
    }

    /// `plexus …`, against this lab.
    pub(crate) fn plexus(&self, words: &[&str]) -> Command {
        let mut command = Command::new(bin(PLEXUS));
        command
            .args(words)
            .env("PLEXUS_LAB", &self.name)
            .env("PLEXUS_CNI_BIN", bin(SHIM))
            .env("KUBECONFIG", self.kubeconfig())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// `plexus lab …` that must succeed; gives what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(
            output.status.success(),
            "{words:?}: {}{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            self.logs()
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `plexus lab …` that must fail; gives what it complained about.
    #[track_caller]
    pub(crate) fn fails(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(!output.status.success(), "{words:?} succeeded");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// `plexus lab ping` until all is as expected: routes to other nodes come a moment after the pods.
    #[track_caller]
    pub(crate) fn all_reach(&self) {
        self.eventually("all are reached who must be, and no others", || {
            self.run(&["ping"]).status.success()
        });
    }

    /// `plexus apply`.
    #[track_caller]
    pub(crate) fn apply(&self, yaml: &str) {
        self.apply_by(&[], yaml);
    }

    /// The same with further flags.
    #[track_caller]
    pub(crate) fn apply_by(&self, flags: &[&str], yaml: &str) {
        let mut apply = self.plexus(&["apply", "-f", "-"]);
        let mut child = apply
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(yaml.as_bytes()).unwrap();
        drop(pipe);
        assert!(child.wait().unwrap().success(), "apply:\n{yaml}");
    }

    /// An object, by `plexus get`; null if there is none.
    pub(crate) fn get(&self, words: &[&str]) -> Value {
        let mut get = self.plexus(&["get"]);
        let output = get.args(words).args(["-o", "json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Deletes a pod, asking the server for that much grace.
    #[track_caller]
    pub(crate) fn delete_pod(&self, name: &str, grace: u32) {
        let path = format!("/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds={grace}");
        let request = format!("DELETE {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n");
        let answer = exchange(Path::new(&self.file("server.sock")), request.as_bytes());
        let answer = answer.expect("the server answers");
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// Changes an object by a merge patch, as `kubectl label`, `cordon` and `taint` change a Node.
    #[track_caller]
    pub(crate) fn patch(&self, path: &str, patch: &Value) {
        let body = patch.to_string();
        let request = format!(
            "PATCH {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\
             Content-Type: application/merge-patch+json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = exchange(Path::new(&self.file("server.sock")), request.as_bytes());
        let answer = answer.expect("the server answers");
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// `plexus lab status -o json`.
    pub(crate) fn status(&self) -> Value {
        let output = self.run(&["status", "-o", "json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// A process of the status.
    pub(crate) fn pid(&self, pointer: &str) -> Option<i64> {
        self.status().pointer(pointer).and_then(Value::as_i64)
    }

    /// SIGKILL to a process of the lab, known by the status.
    pub(crate) fn kill(&self, pointer: &str) -> i64 {
        let pid = self.pid(pointer).expect("it runs");
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(killed.unwrap().success());
        pid
    }

    pub(crate) fn file(&self, name: &str) -> String {
        format!("/run/plexus/lab/{}/{name}", self.name)
    }

    /// Waits; panics with the lab's logs if it never becomes true.
    #[track_caller]
    pub(crate) fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let held = within(TIMEOUT, || {
            let held = holds();
            if !held {
                std::thread::sleep(Duration::from_millis(20));
            }
            held
        });
        assert!(held, "not within {TIMEOUT:?}: {what}\n{}", self.logs());
    }

    fn logs(&self) -> String {
        let entries = fs::read_dir(self.file("log")).into_iter().flatten();
        let mut text = String::new();
        for entry in entries.flatten() {
            let log = fs::read_to_string(entry.path()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(8)..].join("\n    ");
            let name = entry.file_name();
            text.push_str(&format!("  {}:\n    {last}\n", name.to_string_lossy()));
        }
        text
    }

    /// What the machine shows of this lab: namespaces, mounts, processes, files. (Plugins' files are known by
    /// the name of their network: tests give it the lab's.)
    pub(crate) fn traces(&self) -> Vec<String> {
        let (names, dir) = (format!("px-{}-", self.name), self.file(""));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts = mounts.lines().map(|line| format!("mount {line}"));
        let namespaces = Command::new("ip").args(["netns"]).output().unwrap();
        let namespaces = String::from_utf8_lossy(&namespaces.stdout).into_owned();
        let namespaces = namespaces.lines().map(|line| format!("namespace {line}"));
        let all: Vec<String> = mounts.chain(namespaces).chain(processes()).collect();
        // The keeper has it in its environment.
        let kubeconfig = self.kubeconfig().display().to_string();
        let words = [names, dir, kubeconfig];
        let of_ours = all
            .into_iter()
            .filter(|line| words.iter().any(|word| line.contains(word)));
        let files = [
            self.file(""),
            format!("/run/plexus/lab/{}.lock", self.name),
            self.kubeconfig().display().to_string(),
        ];
        let files = files.into_iter().filter(|path| fs::exists(path).unwrap());
        let plugins = Command::new("find").arg("/var/lib/cni").output().unwrap();
        let plugins = String::from_utf8_lossy(&plugins.stdout).into_owned();
        let plugins = plugins.lines().filter(|path| path.contains(&self.name));
        let plugins: Vec<String> = plugins.map(str::to_owned).collect();
        of_ours.chain(files).chain(plugins).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("PLEXUS_TEST_KEEP").is_some() {
            println!(
                "the lab is kept: plexus lab status --lab {0}; plexus lab down --lab {0}",
                self.name
            );
            return;
        }
        let parts = ["log", "*/state", "server", "*.json"];
        failed::save(
            &format!("lab-{}", self.name),
            Path::new(&self.file("")),
            &parts,
        );
        let _ = self.command(&["down"]).output();
    }
}

/// What a lab could have changed of the machine itself: nftables, routing, forwarding.
pub(crate) fn host() -> Vec<String> {
    let looks: [&[&str]; 4] = [
        &["nft", "list", "tables"],
        &["ip", "rule"],
        &["ip", "route", "show", "table", "all", "proto", "80"],
        &[
            "sysctl",
            "net.ipv4.ip_forward",
            "net.ipv6.conf.all.forwarding",
        ],
    ];
    let look = |words: &&[&str]| {
        let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    looks.iter().map(look).collect()
}

/// Links of the namespace that labs are made from.
pub(crate) fn links() -> BTreeSet<String> {
    let output = Command::new("ip").args(["-o", "link"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| line.split(": ").nth(1))
        .map(str::to_owned)
        .collect()
}

/// Command line and environment of every process.
fn processes() -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != std::process::id());
    others
        .map(|pid| {
            let text = |file: &str| {
                let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            format!("process {pid} {} {}", text("cmdline"), text("environ"))
        })
        .collect()
}
