//! The test executables of the workspace, as cargo builds and lists them, and what each of them needs. A target says
//! itself that it does not belong to `make test`: by a feature that it requires in its `Cargo.toml`, or that its file
//! opens with (`#![cfg(feature = "e2e")]`). All of them are built with all features, so that nothing is built twice.

use crate::workspace::Workspace;
use crate::{build, run};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Features of tests that need more than `make test` has, and where these tests run.
const TIERS: &[(&str, Tier)] = &[("scenarios", Tier::Lab), ("e2e", Tier::Cluster)];

/// Targets with `harness = false`.
const OWN_HARNESS: &[&str] = &["in_root", "debian_kernel"];

/// The verb that runs a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// `make test`.
    Test,
    /// `make test-lab`.
    Lab,
    /// `make test-kube`; some of these also on a lab, or with the embedded API.
    Cluster,
}

/// One program with tests in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    /// Its package.
    pub(crate) package: String,
    /// Its target, as after `--test`.
    pub(crate) target: String,
    /// `lib`, `bin` or `test`.
    pub(crate) kind: String,
    /// Where it runs.
    pub(crate) tier: Tier,
    /// The program.
    pub(crate) program: PathBuf,
    /// The directory of its package, in which it is run.
    pub(crate) dir: PathBuf,
}

impl Executable {
    /// What a report calls it.
    pub(crate) fn name(&self) -> String {
        match self.kind.as_str() {
            "test" => format!("{} {}", self.package, self.target),
            "bin" => format!("{} (bin {})", self.package, self.target),
            kind => format!("{} ({kind})", self.package),
        }
    }

    /// It, as `cargo test` would start it.
    pub(crate) fn command(&self, workspace: &Workspace) -> Result<Command> {
        self.on(workspace, &self.program)
    }

    /// The same, and it prints how long each test took, if it has libtest's harness. Only nightly toolchains offer that without the
    /// variable, which is for compilers.
    pub(crate) fn timed(&self, workspace: &Workspace) -> Result<Command> {
        let mut command = self.command(workspace)?;
        if !OWN_HARNESS.contains(&&*self.target) {
            command
                .env("RUSTC_BOOTSTRAP", "1")
                .args(["-Zunstable-options", "--report-time"]);
        }
        Ok(command)
    }

    /// A program that starts it, with the same directory and variables.
    pub(crate) fn on(&self, workspace: &Workspace, runner: &Path) -> Result<Command> {
        let mut command = Command::new(runner);
        run::prepare(workspace, &mut command)?;
        command
            .env("CARGO_MANIFEST_DIR", &self.dir)
            .env("CARGO_PKG_NAME", &self.package)
            .current_dir(&self.dir);
        Ok(command)
    }
}

/// Builds all, with the programs that they start, and lists them.
pub(crate) fn built(workspace: &Workspace) -> Result<Vec<Executable>> {
    let mut cargo = run::cargo_command(workspace)?;
    cargo.arg("test").args(build::EVERYTHING);
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
    println!("+ {}", run::line_of(&cargo));
    let output = cargo
        .current_dir(&workspace.root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the tests do not build; cargo's own message is above");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut all = Vec::new();
    for line in messages.lines() {
        let message = serde_json::from_str(line).context("cargo prints a line that is no JSON")?;
        if let Some(mut executable) = executable(&message) {
            let source = message["target"]["src_path"].as_str().unwrap_or_default();
            let text = std::fs::read_to_string(source);
            let text = text.with_context(|| format!("cannot read {source}"))?;
            executable.tier = tier(&message["target"], &text);
            all.push(executable);
        }
    }
    all.sort_by_key(|executable| (executable.package.clone(), executable.target.clone()));
    Ok(all)
}

/// The one that a message of cargo is about; its tier is not known yet.
fn executable(message: &Value) -> Option<Executable> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let dir = Path::new(message["manifest_path"].as_str()?).parent()?;
    Some(Executable {
        package: package(message["package_id"].as_str()?)?,
        target: text(&message["target"]["name"])?,
        kind: text(&message["target"]["kind"][0])?,
        tier: Tier::Test,
        program: message["executable"].as_str()?.into(),
        dir: dir.to_path_buf(),
    })
}

/// `path+file:///tree/crates/agent#plexus-agent@0.1.0`; a package that is called as its directory is not named again.
fn package(id: &str) -> Option<String> {
    let (place, version) = id.rsplit_once('#')?;
    let name = match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit_once('/')?.1,
    };
    Some(name.to_owned())
}

fn tier(target: &Value, source: &str) -> Tier {
    let required = target["required-features"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let of =
        |(feature, _): &&(&str, Tier)| required.contains(feature) || opens_with(source, feature);
    TIERS.iter().find(of).map_or(Tier::Test, |(_, tier)| *tier)
}

/// Whether a file is only compiled with this feature.
pub(crate) fn opens_with(source: &str, feature: &str) -> bool {
    let gate = format!("#![cfg(feature = \"{feature}\")]");
    source.lines().any(|line| line == gate)
}

#[cfg(test)]
#[path = "executables_tests.rs"]
mod tests;
