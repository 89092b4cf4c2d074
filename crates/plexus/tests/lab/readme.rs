//! The commands of the book's page about labs, as they are written there.

use crate::machine::Lab;
use plexus_testkit::{PLEXUS, bin, example};
use std::path::Path;
use std::process::Command;

const PAGE: &str = "docs/src/lab.md";
const HEADING: &str = "## Commands\n";

#[test]
fn the_commands_work_as_written() {
    let lab = Lab::named('w');
    let root = example("..");
    let commands = commands(&root);
    let count = |word: &str| commands.iter().filter(|one| one.contains(word)).count();
    assert!(count("lab up") == 1 && count("lab ping") == 1 && count("lab down") == 1);
    let directory = bin(PLEXUS).parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    for command in &commands {
        let run = || {
            let mut shell = Command::new("bash");
            shell
                .args(["-ec", command])
                .envs(
                    lab.plexus(&[])
                        .get_envs()
                        .filter_map(|(name, value)| Some((name, value?))),
                )
                .env("PATH", format!("{}:{path}", directory.display()))
                .current_dir(&root);
            shell.output().unwrap()
        };
        // What is applied takes effect a moment later; a person is no faster. After kills it is shown that
        // not all is well.
        let shows_faults = command.contains("lab kill");
        let mut last = run();
        if !last.status.success() && !shows_faults {
            lab.eventually(command, || {
                last = run();
                last.status.success()
            });
        }
        if shows_faults {
            let printed = String::from_utf8_lossy(&last.stdout).into_owned();
            for part in [
                "agent of n1 killed",
                "server killed",
                "controller killed",
                "n2 cut off",
                "n2-agent",
            ] {
                assert!(
                    printed.contains(part),
                    "{command}: no {part:?} in {printed}"
                );
            }
        }
    }
    assert_eq!(lab.traces(), Vec::<String>::new());
}

/// The lines after the prompts of the first block, without remarks.
fn commands(root: &Path) -> Vec<String> {
    let page = std::fs::read_to_string(root.join(PAGE)).unwrap();
    let section = page.split(HEADING).nth(1).expect("the section is there");
    let block = section.split("```").nth(1).expect("it has a block");
    let lines = block.lines().filter_map(|line| line.strip_prefix("# "));
    let commands = lines.map(|line| line.split("  # ").next().unwrap_or_default());
    commands.map(|line| line.trim_end().to_owned()).collect()
}
