//! Where the agent listens: the configuration, the environment, a file beside the binary, the
//! default, in this order. The first that says something decides, right or wrong. But who writes a configuration
//! may be less than the administrator: where the file is, which the agent installs, it says the same or is refused.

use super::{DEFAULT_SOCKET, Surroundings};
use plexus_api::cni::{Code, Error};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The longest path that a unix socket address holds.
const MAX_PATH: usize = 107;
/// Lies beside the binary and holds the socket's path.
const FILE: &str = "plexus-cni.socket";
const CONFIGURED: &str = "agentSocket in the network configuration";

/// The socket's absolute path; `configured` is `agentSocket`.
pub(super) fn socket(
    surroundings: &Surroundings<'_>,
    configured: Option<&str>,
) -> Result<PathBuf, Error> {
    let beside = beside(surroundings)?;
    if let Some(path) = configured {
        let socket = checked(path, CONFIGURED, Code::InvalidConfig)?;
        return match beside {
            Some((text, file)) if text.trim() != path => Err(differs(path, text.trim(), &file)),
            _ => Ok(socket),
        };
    }
    let from_env = super::input::variable(surroundings, "PLEXUS_AGENT_SOCKET")?;
    if !from_env.is_empty() {
        return checked(&from_env, "PLEXUS_AGENT_SOCKET", Code::InvalidEnvironment);
    }
    match beside {
        Some((text, file)) => checked(text.trim(), &file.display().to_string(), Code::Io),
        None => Ok(PathBuf::from(DEFAULT_SOCKET)),
    }
}

fn beside(surroundings: &Surroundings<'_>) -> Result<Option<(String, PathBuf)>, Error> {
    // Without /proc nobody knows where we are: the default is as good as it gets.
    let Ok(exe) = (surroundings.exe)() else {
        return Ok(None);
    };
    let file = exe.with_file_name(FILE);
    let mut text = String::new();
    let read = File::open(&file).and_then(|f| f.take(4096).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(Some((text, file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let msg = format!(
                "cannot read {}, which names the agent's socket: {error}",
                file.display()
            );
            Err(Error::new(Code::Io, msg, "repair or remove that file"))
        }
    }
}

fn differs(configured: &str, installed: &str, file: &Path) -> Error {
    let msg = format!(
        "{CONFIGURED} says {configured:?}, but the agent of this node is at {installed:?}, says {}",
        file.display()
    );
    let next = "remove agentSocket from the configuration";
    Error::new(Code::InvalidConfig, msg, next)
}

fn checked(path: &str, origin: &str, code: Code) -> Result<PathBuf, Error> {
    if path.starts_with('/') && path.len() <= MAX_PATH && !path.contains('\0') {
        return Ok(PathBuf::from(path));
    }
    let shown: String = path.chars().take(160).collect();
    let msg = format!("{origin} says {shown:?}, which cannot be the agent's socket");
    let next = format!("use an absolute path of at most {MAX_PATH} bytes");
    Err(Error::new(code, msg, next))
}
