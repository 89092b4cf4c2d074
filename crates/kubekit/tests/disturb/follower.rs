//! A program that follows Blocks as ours do, and hears nothing while the test does not let it: the shortest outage of
//! an API server that there can be.

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt, api::ListParams};
use plexus_api::objects::Block;
use plexus_client::{Server, Timeouts, WatchError, Watches};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Names of Blocks, as far as was heard.
pub(crate) struct Follower {
    runtime: Runtime,
    events: BoxStream<'static, Result<Event<Block>, WatchError>>,
    known: BTreeSet<String>,
    listed: BTreeSet<String>,
}

impl Follower {
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let timeout = Duration::from_secs(30);
        let timeouts = Timeouts {
            connect: timeout,
            send: None,
            answer: timeout,
        };
        let server = Server::Kubeconfig(kubeconfig.to_owned());
        let client = runtime.block_on(server.client(timeouts)).expect("a client");
        let blocks: Api<Block> = Api::all(client);
        Self {
            events: Watches::default()
                .watch(blocks, ListParams::default())
                .boxed(),
            runtime,
            known: BTreeSet::new(),
            listed: BTreeSet::new(),
        }
    }

    /// Listens until it knows what it should.
    pub(crate) fn listen_until(
        &mut self,
        timeout: Duration,
        knows: impl Fn(&BTreeSet<String>) -> bool,
    ) {
        let (events, known, listed) = (&mut self.events, &mut self.known, &mut self.listed);
        let heard = async {
            while !knows(known) {
                match events.next().await.expect("a watch never ends") {
                    Ok(Event::Init) => listed.clear(),
                    Ok(Event::InitApply(block)) => drop(listed.insert(block.name_any())),
                    Ok(Event::InitDone) => known.clone_from(listed),
                    Ok(Event::Apply(block)) => drop(known.insert(block.name_any())),
                    Ok(Event::Delete(block)) => drop(known.remove(&block.name_any())),
                    Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                }
            }
        };
        let heard = self
            .runtime
            .block_on(async { tokio::time::timeout(timeout, heard).await });
        assert!(
            heard.is_ok(),
            "not heard within {timeout:?}: {:?}",
            self.known
        );
    }
}
