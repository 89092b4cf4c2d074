//! Who is at the other end of the socket: only root, and for CNI only from the agent's own
//! network namespace, since the agent acts in its own. Both by the kernel's word.

use plexus_types::NetnsCookie;
use std::os::unix::net::UnixStream;

/// A caller that may connect.
#[derive(Debug)]
pub(crate) struct Peer {
    pid: Option<u32>,
    netns: NetnsCookie,
}

/// Why a caller is turned away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("only root may talk to the agent, the caller (process {pid}) has uid {uid}")]
    NotRoot { pid: u32, uid: u32 },
    #[error("the kernel does not say who the caller is: {0}")]
    Unknown(String),
    #[error("the caller is in the network namespace {theirs}, this agent serves {ours}")]
    OtherNamespace { theirs: String, ours: String },
}

/// Asks the kernel who connected, and from where.
pub(crate) fn identify(stream: &UnixStream) -> Result<Peer, Refusal> {
    let unknown = |error: std::io::Error| Refusal::Unknown(error.to_string());
    let credentials = plexus_kernel::peer_credentials(stream).map_err(unknown)?;
    if credentials.uid != 0 {
        let pid = credentials.pid.unwrap_or(0);
        return Err(Refusal::NotRoot {
            pid,
            uid: credentials.uid,
        });
    }
    let netns = plexus_kernel::netns_of(stream).map_err(unknown)?;
    Ok(Peer {
        pid: credentials.pid,
        netns,
    })
}

/// A namespace as `lsns` and `/proc` show it, or its cookie if the process cannot be seen.
fn description(process: Option<String>, cookie: NetnsCookie) -> String {
    let link = process.and_then(|p| std::fs::read_link(format!("/proc/{p}/ns/net")).ok());
    link.map_or_else(|| cookie.to_string(), |link| link.display().to_string())
}

impl Peer {
    /// Whether the caller is where the agent is.
    pub(crate) fn same_namespace(&self, ours: NetnsCookie) -> Result<(), Refusal> {
        if self.netns == ours {
            return Ok(());
        }
        Err(Refusal::OtherNamespace {
            theirs: description(self.pid.map(|pid| pid.to_string()), self.netns),
            ours: description(Some("self".to_owned()), ours),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_compared_with_the_agent() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let here = plexus_kernel::netns_of(&ours).unwrap();
        let peer = identify(&ours).unwrap();
        assert_eq!(peer.same_namespace(here), Ok(()));
        let refusal = peer.same_namespace(NetnsCookie(0)).unwrap_err().to_string();
        assert!(refusal.contains("net:["), "{refusal}");
        let unseen = Peer { pid: None, ..peer };
        let refusal = unseen
            .same_namespace(NetnsCookie(0))
            .unwrap_err()
            .to_string();
        assert!(refusal.contains(&here.to_string()), "{refusal}");
    }
}
