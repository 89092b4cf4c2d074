//! Who is at the other end of the socket: only root, and for CNI only from the agent's own
//! network namespace, since the agent acts in its own.

use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

/// A caller that may connect.
#[derive(Debug)]
pub(crate) struct Peer {
    pid: Option<u32>,
}

/// Why a caller is turned away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Not root.
    #[error("only root may talk to the agent, the caller (process {pid}) has uid {uid}")]
    NotRoot {
        /// Its process.
        pid: u32,
        /// Its user.
        uid: u32,
    },
    /// The kernel does not say who it is.
    #[error("the kernel does not say who the caller is: {0}")]
    Unknown(String),
    /// From another network namespace.
    #[error("the caller is in the network namespace {theirs}, this agent serves {ours}")]
    OtherNamespace {
        /// The caller's.
        theirs: String,
        /// The agent's.
        ours: String,
    },
}

/// Asks the kernel who connected.
pub(crate) fn identify(stream: &UnixStream) -> Result<Peer, Refusal> {
    let credentials = plexus_kernel::peer_credentials(stream)
        .map_err(|error| Refusal::Unknown(error.to_string()))?;
    if credentials.uid != 0 {
        let pid = credentials.pid.unwrap_or(0);
        return Err(Refusal::NotRoot {
            pid,
            uid: credentials.uid,
        });
    }
    Ok(Peer {
        pid: credentials.pid,
    })
}

impl Peer {
    /// Compares namespaces: the kernel's word where the caller's process can be seen, else its own
    /// (a caller in another pid namespace; it is root either way).
    pub(crate) fn same_namespace(&self, said: Option<&str>) -> Result<(), Refusal> {
        let ours = namespace_of("self").ok_or_else(|| Refusal::Unknown("no /proc".to_owned()))?;
        let seen = self.pid.and_then(|pid| namespace_of(&pid.to_string()));
        match seen.or(said.map(str::to_owned)) {
            Some(theirs) if theirs == ours => Ok(()),
            Some(theirs) => Err(Refusal::OtherNamespace { theirs, ours }),
            None => Err(Refusal::Unknown(
                "its process cannot be seen and it does not say".to_owned(),
            )),
        }
    }
}

fn namespace_of(process: &str) -> Option<String> {
    let metadata = std::fs::metadata(format!("/proc/{process}/ns/net")).ok()?;
    Some(format!("{}:{}", metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_ourselves_are_welcome() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = identify(&ours).unwrap();
        assert_eq!(peer.same_namespace(None), Ok(()));
        assert_eq!(
            peer.same_namespace(Some("1:2")),
            Ok(()),
            "the kernel's word counts"
        );
    }

    #[test]
    fn an_invisible_caller_is_believed_but_compared() {
        let peer = Peer { pid: None };
        let ours = namespace_of("self").unwrap();
        assert_eq!(peer.same_namespace(Some(&ours)), Ok(()));
        let refusal = peer.same_namespace(Some("4:1")).unwrap_err().to_string();
        assert!(
            refusal.contains("4:1") && refusal.contains(&ours),
            "{refusal}"
        );
        assert!(peer.same_namespace(None).is_err());
    }
}
