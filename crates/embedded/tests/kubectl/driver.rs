//! kubectl as a test uses it: a server of the test's own, a command line, what it says.

use crate::common::TestServer;
use plexus_embedded::Server;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

pub(crate) struct Kubectl {
    program: PathBuf,
    test: TestServer,
    _server: Server,
}

impl Kubectl {
    pub(crate) fn new(name: &str) -> Self {
        let program = std::env::var_os("PLEXUS_KUBECTL")
            .expect("PLEXUS_KUBECTL must name a kubectl: make kube-tools builds one");
        let test = TestServer::new(&format!("kubectl-{name}"));
        let server = test.start();
        Self {
            program: program.into(),
            test,
            _server: server,
        }
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words(line))
            .arg("--request-timeout=20s")
            .env("KUBECONFIG", self.test.path().join("kubeconfig"))
            .env("HOME", self.test.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self, line: &str) -> Child {
        self.command(line).spawn().unwrap()
    }

    pub(crate) fn run_with(&self, line: &str, input: &str) -> Output {
        let mut child = self.start(line);
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    }

    /// It works; gives what it says.
    #[track_caller]
    pub(crate) fn with(&self, line: &str, input: &str) -> String {
        let output = self.run_with(line, input);
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "kubectl {line}: {errors}{out}");
        out
    }

    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        self.with(line, "")
    }

    /// It works, and says this.
    #[track_caller]
    pub(crate) fn says(&self, line: &str, expected: &str) {
        let out = self.run(line);
        assert!(out.contains(expected), "kubectl {line}: {out}");
    }

    /// It fails, and says this.
    #[track_caller]
    pub(crate) fn fails(&self, line: &str, input: &str, expected: &str) {
        let output = self.run_with(line, input);
        let errors = text(&output.stderr);
        assert!(
            !output.status.success(),
            "kubectl {line}: {}",
            text(&output.stdout)
        );
        assert!(errors.contains(expected), "kubectl {line}: {errors}");
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// At spaces, but for those in quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}
