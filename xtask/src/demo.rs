//! `crates/plexus/examples/demo`: builds it and runs it, for people; and runs it as a test, also where it must fail. A
//! development build: it is ready in half the time of a release build, and `make test` uses most of it.

use crate::{build, lock, place::Place, run};
use anyhow::{Context, Result, bail};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// Where the lab of the demonstration keeps its files.
const LAB: &str = "/run/plexus/lab/demo";

pub(crate) fn run(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    let build = ["build", "-p", "plexus", "--bins", "--example", "demo"];
    run::cargo(place, &build)?;
    build::static_shim(place)?;
    run::shout(place, &mut demo(place, &place.target.join("debug/plexus")))
}

/// All is well; one node cannot be reached; somebody presses Ctrl-C. Needs the programs and the shim.
pub(crate) fn checked(place: &Place, features: &str) -> Result<()> {
    let features = format!("{},{features}", build::FAULTS);
    let build = ["build", "--workspace", "--example", "demo"];
    run::cargo(place, &[&build[..], &["--features", &features]].concat())?;
    let plexus = place.target.join("debug/plexus");
    run::shout(place, &mut demo(place, &plexus))?;
    let saboteur = saboteur(place, &plexus)?;
    if run::shout(place, &mut demo(place, &saboteur)).is_ok() {
        bail!("the demonstration succeeds although a node cannot be reached");
    }
    nothing_is_left("it failed")?;
    interrupted(place, &plexus)?;
    nothing_is_left("Ctrl-C")
}

fn demo(place: &Place, plexus: &Path) -> Command {
    let mut demo = Command::new(place.target.join("debug/examples/demo"));
    demo.env("PLEXUS_BIN", plexus)
        .env("PLEXUS_CNI_BIN", place.shim())
        .current_dir(&place.root);
    demo
}

/// A `plexus` that cuts a node's wires as soon as the lab is up.
fn saboteur(place: &Place, plexus: &Path) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let dir = place.target.join("demo-sabotage");
    let script = dir.join("plexus");
    let text = format!(
        "#!/bin/sh\n'{0}' \"$@\" || exit\n[ \"$1 $2\" != 'lab up' ] || '{0}' lab partition n3\n",
        plexus.display()
    );
    let written = std::fs::create_dir_all(&dir)
        .and_then(|()| std::fs::write(&script, text))
        .and_then(|()| std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)));
    written.with_context(|| format!("cannot write {}", script.display()))?;
    Ok(script)
}

/// As a terminal does it: the signal goes to the whole group of processes.
fn interrupted(place: &Place, plexus: &Path) -> Result<()> {
    let mut demo = demo(place, plexus).process_group(0).spawn()?;
    let end = Instant::now() + PATIENCE;
    let mut sent = false;
    loop {
        if let Some(status) = demo.try_wait()? {
            if !sent || status.success() {
                bail!("the demonstration ended with {status} before or in spite of Ctrl-C");
            }
            return Ok(());
        }
        if !sent && Path::new(LAB).join("n3").exists() {
            let group = format!("-{}", demo.id());
            run::shout(place, Command::new("kill").args(["-INT", "--", &group]))?;
            sent = true;
        }
        if Instant::now() > end {
            let _ = demo.kill();
            bail!("the demonstration does not end after Ctrl-C");
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
