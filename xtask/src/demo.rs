//! `crates/plexus/examples/demo`: builds it and runs it, for people; and runs it as a test, also where it must fail. A
//! development build: it is ready in half the time of a release build, and `make test` uses most of it.

use crate::{build, lock, run, workspace::Workspace};
use anyhow::{Context, Result, bail};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Longer than it takes on a busy machine.
const DEMO_TIMEOUT: Duration = Duration::from_secs(180);
/// Where the lab of the demonstration keeps its files.
const LAB: &str = "/run/plexus/lab/demo";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let alone = lock::build_directory(workspace)?;
    let build = ["build", "-p", "plexus", "--bins", "--example", "demo"];
    run::cargo(workspace, &build)?;
    build::static_shim(workspace)?;
    let mut demo = demo(workspace, &workspace.target.join("debug/plexus"));
    println!("+ {}", demo.get_program().display());
    // It takes our place, and the lock with it: who presses Ctrl-C has the prompt again when it has cleaned up.
    Err(demo.stdin(alone).exec()).context("cannot start the demonstration")
}

/// All is well, with no program but those that `make demo` installs; a cell of the ping matrix differs, or is not judged; somebody presses Ctrl-C, or closes the terminal.
/// Needs the programs and the shim.
pub(crate) fn checked(workspace: &Workspace, features: &str) -> Result<()> {
    let features = format!("{},{features}", build::FAULTS);
    let build = ["build", "--workspace", "--example", "demo"];
    run::cargo(
        workspace,
        &[&build[..], &["--features", &features]].concat(),
    )?;
    let plexus = workspace.target.join("debug/plexus");
    run::logged(
        workspace,
        demo(workspace, &plexus).env("PATH", needed_programs(workspace)?),
    )?;
    let cut = format!("'{}' lab cut n3 >&2 || exit", plexus.display());
    let wrong = ["Error: plexus lab ping failed:", "are not as expected (!)"];
    fails_at_ping(workspace, &plexus, &cut, &wrong)?;
    nothing_is_left("it failed")?;
    let silent = format!(
        "'{}' \"$@\" | sed 's/60 judged/59 judged/'; exit",
        plexus.display()
    );
    fails_at_ping(workspace, &plexus, &silent, &["some were not judged"])?;
    nothing_is_left("it failed")?;
    for signal in ["-INT", "-HUP"] {
        interrupted(workspace, &plexus, signal)?;
        nothing_is_left(signal)?;
    }
    Ok(())
}

fn demo(workspace: &Workspace, plexus: &Path) -> Command {
    let mut demo = Command::new(workspace.target.join("debug/examples/demo"));
    demo.env("PLEXUS_BIN", plexus)
        .env("PLEXUS_CNI_BIN", workspace.shim())
        .current_dir(&workspace.root);
    demo
}

/// A directory with the only programs that the demonstration may execute besides our own: what `make demo` installs.
fn needed_programs(workspace: &Workspace) -> Result<PathBuf> {
    let dir = workspace.target.join("demo-programs");
    let list = std::fs::read_to_string(workspace.root.join("tools/build-packages.txt"))?;
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let proofs = lines.filter_map(|line| line.split_whitespace().nth(1));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    for name in proofs.filter(|proof| !proof.starts_with('/')) {
        let dirs = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(Path::new);
        let found = dirs
            .iter()
            .map(|dir| dir.join(name))
            .find(|path| path.exists());
        let program = found
            .with_context(|| format!("{name} of tools/build-packages.txt is not installed"))?;
        std::os::unix::fs::symlink(program, dir.join(name))?;
    }
    Ok(dir)
}

/// It fails where the pods ping, because something is done there that it must notice, and says so.
fn fails_at_ping(workspace: &Workspace, plexus: &Path, done: &str, says: &[&str]) -> Result<()> {
    let saboteur = saboteur(workspace, plexus, done)?;
    println!("+ demo, and where the pods ping: {done}");
    let output = demo(workspace, &saboteur)
        .output()
        .context("cannot start the demonstration")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() {
        bail!("the demonstration succeeds in spite of `{done}`:\n{shown}{said}");
    }
    // The command that failed, and what it printed of the matrix.
    for part in says {
        if !said.contains(part) {
            bail!("the demonstration fails, but does not say {part:?}:\n{shown}{said}");
        }
    }
    Ok(())
}

/// A `plexus` that does something else where pods ping.
fn saboteur(workspace: &Workspace, plexus: &Path, done: &str) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let dir = workspace.target.join("demo-sabotage");
    let script = dir.join("plexus");
    let text = format!(
        "#!/bin/sh\n\
         if [ \"$1 $2\" = 'lab ping' ]; then {done}; fi\n\
         exec '{}' \"$@\"\n",
        plexus.display()
    );
    let written = std::fs::create_dir_all(&dir)
        .and_then(|()| std::fs::write(&script, text))
        .and_then(|()| std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)));
    written.with_context(|| format!("cannot write {}", script.display()))?;
    Ok(script)
}

/// As a terminal does it: the signal goes to the whole group of processes, which does not ignore it, whoever started us.
fn interrupted(workspace: &Workspace, plexus: &Path, signal: &str) -> Result<()> {
    let demo = demo(workspace, plexus);
    let variables = demo
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut command = Command::new("env");
    command
        .arg("--default-signal=INT,HUP")
        .arg(demo.get_program())
        .envs(variables)
        .current_dir(&workspace.root);
    let mut demo = command.process_group(0).spawn()?;
    let end = Instant::now() + DEMO_TIMEOUT;
    let mut sent = false;
    loop {
        if let Some(status) = demo.try_wait()? {
            if !sent || status.success() {
                bail!("the demonstration ended with {status} before or in spite of {signal}");
            }
            return Ok(());
        }
        if !sent && Path::new(LAB).join("n3").exists() {
            let group = format!("-{}", demo.id());
            run::logged(workspace, Command::new("kill").args([signal, "--", &group]))?;
            sent = true;
        }
        if Instant::now() > end {
            let _ = demo.kill();
            bail!("the demonstration does not end after {signal}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn nothing_is_left(after: &str) -> Result<()> {
    let names = Command::new("ip").arg("netns").output()?;
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    let left = names.lines().find(|line| line.starts_with("px-demo-"));
    if left.is_some() || Path::new(LAB).exists() {
        bail!("the demonstration leaves its lab behind after {after}: {left:?}");
    }
    Ok(())
}
