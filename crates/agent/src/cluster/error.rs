//! Why the API side could not do what it was asked.

use ipnet::IpNet;
use plexus_api::cni::{Code, Error};

/// Why the API side does not start.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Nobody says how to reach it.
    #[error(transparent)]
    Client(#[from] plexus_client::ClientError),
    /// No thread for it.
    #[error("cannot start the thread of the API side")]
    Thread(#[source] std::io::Error),
    /// Its label would be refused.
    #[error(
        "the node's name {0:?} has more than 63 bytes: records and blocks cannot be labelled with it"
    )]
    NodeName(String),
}

/// A question to the API that has no answer. Never means "there is none".
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("the API did not answer within {seconds} s when asked for {what}")]
    Late { what: String, seconds: u64 },
    #[error("cannot get {what} from the API")]
    Api {
        what: String,
        #[source]
        source: kube::Error,
    },
}

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ClaimError {
    #[error("subnet {0} is not divided into blocks: this node has only what the cluster gave it")]
    NotDivided(IpNet),
    #[error(
        "no free block in {subnet} of network {network}: {taken} are taken, {tried} of them were tried now"
    )]
    Exhausted {
        network: String,
        subnet: IpNet,
        taken: usize,
        tried: usize,
    },
    #[error(
        "{none}; {} asked for a part of theirs, and none was given within {seconds} s",
        nodes_were(owners)
    )]
    NotGiven {
        none: Box<ClaimError>,
        owners: Vec<String>,
        seconds: u64,
    },
    #[error("{none}; other nodes could not be asked for a part of theirs: {cause}")]
    CannotAsk {
        none: Box<ClaimError>,
        cause: String,
    },
    #[error(
        "{cidr} of network {network} belongs to node {owner}, so the address {wanted} cannot be used here"
    )]
    Elsewhere {
        network: String,
        cidr: IpNet,
        owner: String,
        wanted: std::net::IpAddr,
    },
    #[error("network {0} is being deleted: no more addresses are given out")]
    Closing(String),
    #[error("the Node object of {0} is not known yet: a block cannot be claimed for it")]
    NoNode(String),
    #[error(
        "the API did not answer within {seconds} s when a block of network {network} was claimed"
    )]
    Late { network: String, seconds: u64 },
    /// The API refused or could not be reached. Says nothing about whose the block is.
    #[error("cannot claim {cidr} of network {network}: {cause}")]
    Api {
        network: String,
        cidr: IpNet,
        cause: String,
    },
}

impl ClaimError {
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            ClaimError::NotGiven { .. } => {
                "free addresses on one of these nodes, or give the network another subnet; if they have free addresses, is the agent running there?"
            }
            ClaimError::CannotAsk { .. } => {
                "may this agent create blockrequests.plexus.dev, and are they defined? free addresses, or give the network another subnet"
            }
            ClaimError::Closing(_) => "use another network, or make it again when it is gone",
            _ => "free addresses, or give the network another subnet",
        }
    }
}

/// The first of them, and how many there are.
fn nodes_were(owners: &[String]) -> String {
    const NAMED: usize = 5;
    let named: Vec<&str> = owners.iter().take(NAMED).map(String::as_str).collect();
    let more = owners.len().saturating_sub(NAMED);
    let (noun, verb) = match owners.len() {
        1 => ("node", "was"),
        _ => ("nodes", "were"),
    };
    match more {
        0 => format!("{noun} {} {verb}", named.join(", ")),
        _ => format!("{noun} {} and {more} more {verb}", named.join(", ")),
    }
}

impl From<AskError> for Error {
    fn from(error: AskError) -> Self {
        Error::new(
            Code::TryAgainLater,
            crate::failure::chain(&error),
            "is the API server up, and may this agent get it? the kubelet tries again",
        )
    }
}
