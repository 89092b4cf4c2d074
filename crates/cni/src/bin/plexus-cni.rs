//! The CNI plugin: hands the request to the agent and prints its answer.

use plexus_cni::shim::{self, Surroundings};
use std::process::ExitCode;

fn main() -> ExitCode {
    let surroundings = Surroundings {
        var: &|name| std::env::var_os(name),
        exe: &std::env::current_exe,
    };
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    ExitCode::from(shim::run(&surroundings, &mut stdin, &mut stdout))
}
