//! Least privilege, as the manifest has it: a node's token writes that node's records and nothing of
//! another's, whatever it is asked; agent and controller may do nothing that they have no use for.
//! Needs the manifest applied, an agent on two nodes, and a kubeconfig that may do everything. (Without agents, and
//! installed in another namespace: `rights`.)
#![cfg(feature = "e2e")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

mod tokens;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams};
use tokens::TestClients;

const OURS: &str = "plexus-system";

#[test]
fn tokens_reach_no_further_than_they_must() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let config = tokens::config().await;
        let admin = Client::try_from(config.clone()).unwrap();
        let agents = agents_of_two_nodes(&admin).await;
        TestClients::new(&config, OURS, agents).await.check().await;
    });
}

async fn agents_of_two_nodes(admin: &Client) -> [Pod; 2] {
    let pods: Api<Pod> = Api::namespaced(admin.clone(), OURS);
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    let spec = |pod: &Pod| pod.spec.clone().unwrap_or_default();
    let mut agents: Vec<Pod> = pods.into_iter().collect();
    agents.retain(|pod| spec(pod).service_account_name.as_deref() == Some("plexus-agent"));
    agents.retain(|pod| spec(pod).node_name.is_some() && pod.metadata.deletion_timestamp.is_none());
    agents.sort_by_key(|pod| spec(pod).node_name);
    agents.dedup_by_key(|pod| spec(pod).node_name);
    agents.truncate(2);
    agents.try_into().expect("agents on two nodes")
}
