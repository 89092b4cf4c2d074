//! The shim: what happens between a runtime that executes `plexus-cni` and the agent.
//!
//! ```text
//! runtime ── env, stdin ──► shim ── POST /cni/<verb> ──► agent
//!         ◄── stdout, rc ──      ◄── result or error ──
//! ```
//!
//! Owns no state and no policy: it checks that the input is one bounded JSON object, finds the
//! agent's socket, makes one call, waits a little for an agent that restarts, and prints the
//! answer. VERSION it answers itself. A DEL that finds no agent goes to the [queue](crate::queue).

mod call;
#[cfg(test)]
mod fuzz;
pub mod http;
mod input;
mod locate;

use call::Call;
use input::Input;
use plexus_api::cni::{Code, Command, Error, Version};
use plexus_faults::effect;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// The largest request body that is sent or queued: a configuration and its environment.
pub const MAX_BODY: usize = 3 << 20;
/// Where the agent listens unless something says otherwise.
pub const DEFAULT_SOCKET: &str = "/run/plexus/agent.sock";

/// What the process sees besides its standard streams; injected by tests.
pub struct Surroundings<'a> {
    /// Reads an environment variable.
    pub var: &'a dyn Fn(&str) -> Option<OsString>,
    /// The path of the running binary.
    pub exe: &'a dyn Fn() -> io::Result<PathBuf>,
}

/// One CNI call from beginning to end; the exit code is returned.
///
/// Flow: command, standard input, socket, call. Prints at most one JSON object: ADD's result,
/// VERSION's list, or one error. Returns 0 only if the runtime may believe that it was done.
pub fn run(surroundings: &Surroundings<'_>, stdin: &mut dyn Read, stdout: &mut dyn Write) -> u8 {
    let mut version = Version::V1_1_0;
    match serve(surroundings, stdin, &mut version) {
        Ok(text) => print(stdout, &text).map_or(1, |()| 0),
        Err(Failure::Told(text)) => print(stdout, &text).map_or(1, |()| 1),
        Err(Failure::Own(error)) => print(stdout, &error.to_json(version)).map_or(1, |()| 1),
    }
}

/// Why the call failed.
enum Failure {
    /// The agent says so, in these words.
    Told(String),
    /// We say so.
    Own(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Own(error)
    }
}

/// The text to print, empty if there is none; `version` is set as soon as it is known.
fn serve(
    surroundings: &Surroundings<'_>,
    stdin: &mut dyn Read,
    version: &mut Version,
) -> Result<String, Failure> {
    let verb = input::variable(surroundings, "CNI_COMMAND")?;
    if verb == "VERSION" {
        return Ok(versions(stdin));
    }
    let Some(command) = Command::from_env(&verb) else {
        return Err(unknown_command(&verb).into());
    };
    let text = input::read(stdin)?;
    let input = Input::parse(&text)?;
    *version = input.version;
    let socket = locate::socket(surroundings, input.socket.as_deref())?;
    let request = input::request(surroundings, input.config)?;
    let body = input::body(&request)?;
    let call = Call {
        surroundings,
        command,
        socket: &socket,
        request: &request,
        body: &body,
    };
    call.run()
}

fn unknown_command(verb: &str) -> Error {
    let shown: String = verb.chars().take(64).collect();
    let msg = if verb.is_empty() {
        "CNI_COMMAND is not set".to_owned()
    } else {
        format!("CNI_COMMAND {shown:?} is not one of ADD, DEL, CHECK, GC, STATUS, VERSION")
    };
    let next = "this is a CNI plugin: a container runtime executes it, with the variables of the \
                CNI specification and a network configuration on standard input";
    Error::new(Code::InvalidEnvironment, msg, next)
}

/// VERSION answers whatever is on standard input: its only purpose is to find out what we speak.
fn versions(stdin: &mut dyn Read) -> String {
    let text = input::read(stdin).unwrap_or_default();
    let version = Input::parse(&text).map_or(Version::V1_1_0, |input| input.version);
    let supported = Version::ALL.map(Version::as_str).join(r#"",""#);
    format!(r#"{{"cniVersion":"{version}","supportedVersions":["{supported}"]}}"#)
}

fn print(stdout: &mut dyn Write, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    effect("shim.print<");
    let written = stdout
        .write_all(format!("{text}\n").as_bytes())
        .and_then(|()| stdout.flush());
    effect("shim.print>");
    written
}
