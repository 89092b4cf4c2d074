//! The server's first answer: the kubeconfig that it writes, the one for those inside the lab, and a client
//! for the keeper itself.

use super::shared::Shared;
use crate::error::{LabError, chain};
use crate::{api, files};
use std::io;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether the server answers.
pub(super) async fn ready(shared: &Arc<Shared>) -> Result<(), String> {
    let client = match shared.client_now() {
        Some(client) => client,
        None => {
            write_kubeconfig(shared).map_err(|error| chain(&error))?;
            let client = api::client(&shared.layout.kubeconfig()).await;
            client.map_err(|error| chain(&error))?
        }
    };
    let answered = tokio::time::timeout(REQUEST_TIMEOUT, client.apiserver_version()).await;
    match answered {
        Err(_) => Err("it does not answer".to_owned()),
        Ok(Err(error)) => Err(format!("no answer yet: {}", chain(&error))),
        Ok(Ok(_)) => {
            if shared.client_now().is_none() {
                shared.set_client(client);
            }
            Ok(())
        }
    }
}

/// Writes the kubeconfig for those inside the lab, and the short name of the other one.
fn write_kubeconfig(shared: &Shared) -> Result<(), LabError> {
    let (outer, inner) = (
        shared.layout.server_kubeconfig(),
        shared.layout.inner_kubeconfig(),
    );
    let text = std::fs::read_to_string(&outer).map_err(LabError::file("read", &outer))?;
    let text = api::inner_kubeconfig(&text).map_err(LabError::file("understand", &outer))?;
    files::put(&inner, text.as_bytes()).map_err(LabError::file("write", &inner))?;
    let short = shared.layout.kubeconfig();
    match symlink("server/kubeconfig", &short) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(LabError::file("make", &short)(error))
        }
        _ => Ok(()),
    }
}
