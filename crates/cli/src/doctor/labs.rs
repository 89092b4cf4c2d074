//! Network namespaces of labs that are no more. A lab's namespaces carry its name, and a lab that is
//! there has a directory of that name.

use super::{Check, Machine, Subject};
use plexus_types::lab_of_namespace;
use std::collections::BTreeSet;
use std::fs;

pub(super) fn check(machine: &Machine) -> Check {
    let entries = fs::read_dir(&machine.netns).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let labs: BTreeSet<String> = names
        .filter_map(|name| lab_of_namespace(&name).map(str::to_owned))
        .collect();
    let (with_directory, without_directory): (Vec<&String>, Vec<&String>) =
        labs.iter().partition(|lab| machine.labs.join(lab).is_dir());
    if without_directory.is_empty() {
        let found = format!("{} labs, each with its directory", with_directory.len());
        return Check::pass(Subject::LeakedLabs, found);
    }
    let without_directory: Vec<&str> = without_directory.into_iter().map(String::as_str).collect();
    Check::warn(
        Subject::LeakedLabs,
        format!(
            "namespaces of labs that are gone: {}",
            without_directory.join(", ")
        ),
        format!(
            "plexus lab down --lab {} removes them, whatever else is left of it",
            without_directory.first().copied().unwrap_or_default()
        ),
    )
}
