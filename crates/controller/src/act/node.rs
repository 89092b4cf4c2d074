//! A Node that is gone: the records of its pods have nobody left to remove them, nobody waits for what it
//! asked for, and its blocks return, after the checks. Before anything is taken away the API server is
//! asked, not the cache.

use crate::act::network::CONCURRENT_REQUESTS;
use crate::api::Failure;
use crate::cache::{BlockView, Identity, Name, RecordView, RequestView};
use crate::decide::gone::{self, is_abandoned, may_return};
use crate::engine::Engine;
use crate::queue::Key;
use futures::StreamExt;
use kube::ResourceExt;
use plexus_api::objects::FINALIZER;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Instant;

/// How often the controller checks whether the pods of a Node that is gone are gone too.
const POD_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// … and of one that another Node of its name has replaced.
const REPLACED_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The objects of a Node that is gone.
struct GoneNodeObjects {
    blocks: Vec<(Name, BlockView)>,
    records: Vec<(Name, RecordView)>,
    requests: Vec<(Name, RequestView)>,
}

impl Engine {
    /// Cleans up after a Node, if it is gone.
    pub(crate) async fn node(&mut self, node: &str) -> Result<(), Failure> {
        let left = self.left(node);
        if left.blocks.is_empty() && left.records.is_empty() && left.requests.is_empty() {
            return Ok(());
        }
        let there = self.cluster.node(node).await?;
        for (name, request) in left.requests.iter().filter(|_| there.is_none()) {
            tracing::info!(request = %name, "removing the request of a Node that is gone");
            self.cluster.delete_request(name, &request.id.uid).await?;
        }
        if left.blocks.is_empty() && left.records.is_empty() {
            return Ok(());
        }
        let uid = there
            .as_ref()
            .and_then(|node| node.uid())
            .unwrap_or_default();
        let successor = there.map(|node| Identity::of(&node.metadata).created);
        let successor = successor.as_deref();
        // Pods in the host's own network have no address of a block; on a Node that is there, those
        // of DaemonSets stay for ever.
        let bound = self.cluster.pods_on(node, successor.is_some()).await?;
        let bound: Vec<String> = bound.iter().filter_map(ResourceExt::uid).collect();

        let mut rest = self
            .release_records(node, &left.records, &bound, successor)
            .await?;
        let now = Instant::now();
        let gone: BTreeSet<&String> = left
            .blocks
            .iter()
            .map(|(_, block)| &block.node_uid)
            .filter(|one| **one != uid)
            .collect();
        for gone in gone {
            let known = self.gone.known_for(gone, now);
            let grace = self.options.node_grace;
            let (free, held): (Vec<_>, Vec<_>) = left
                .blocks
                .iter()
                .filter(|(_, block)| block.node_uid == *gone)
                .partition(|(_, block)| {
                    let replaced = successor.is_some();
                    let left = gone::GoneNodeBlock {
                        allocated: block.allocated,
                        has_donated_parts: self.cache.has_parts_of_others(block),
                    };
                    may_return(known, grace, bound.len(), left, replaced)
                });
            if !free.is_empty() {
                self.return_blocks(node, gone, free).await?;
            }
            if held.is_empty() {
                self.gone.forget(gone);
            } else {
                rest = rest.min(retry_after(known, grace, successor.is_some()));
            }
        }
        if rest < Duration::MAX {
            self.retry_after(Key::Node(node.to_owned()), rest);
        }
        Ok(())
    }

    /// What belongs to Nodes of this name that are not there, as the cache knows it.
    fn left(&mut self, node: &str) -> GoneNodeObjects {
        let there = self
            .cache
            .nodes
            .get(&Name::new("", node))
            .map(|node| node.id.clone());
        if let Some(there) = &there {
            self.gone.forget(&there.uid);
        }
        let other = |uid: &str| there.as_ref().is_none_or(|there| there.uid != uid);
        let is_older = |made: &str| {
            there
                .as_ref()
                .is_none_or(|there| made <= there.created.as_str())
        };
        let blocks = self
            .cache
            .blocks_on(node)
            .filter(|(_, block)| other(&block.node_uid));
        let records = self
            .cache
            .records_on(node)
            .filter(|(_, record)| is_older(&record.id.created));
        GoneNodeObjects {
            blocks: blocks
                .map(|(name, block)| (name.clone(), block.clone()))
                .collect(),
            records: records
                .map(|(name, record)| (name.clone(), record.clone()))
                .collect(),
            requests: self
                .cache
                .requests_on(node)
                .filter(|_| there.is_none())
                .map(|(name, request)| (name.clone(), request.clone()))
                .collect(),
        }
    }

    /// Removes the records that nobody else will; gives when to look at the others again.
    async fn release_records(
        &mut self,
        node: &str,
        records: &[(Name, RecordView)],
        bound: &[String],
        successor: Option<&str>,
    ) -> Result<Duration, Failure> {
        let abandoned: Vec<&(Name, RecordView)> = records
            .iter()
            .filter(|(_, record)| {
                is_abandoned(&record.pod_uid, &record.id.created, bound, successor)
            })
            .collect();
        if !abandoned.is_empty() {
            tracing::info!(
                node,
                records = abandoned.len(),
                "removing the records of pods on a Node that is gone"
            );
            let cluster = self.cluster.clone();
            let removals = abandoned
                .iter()
                .map(|(name, record)| cluster.remove_record(name, &record.id, FINALIZER));
            let results: Vec<_> = futures::stream::iter(removals)
                .buffer_unordered(CONCURRENT_REQUESTS)
                .collect()
                .await;
            results.into_iter().collect::<Result<(), Failure>>()?;
        }
        Ok(match records.len() - abandoned.len() {
            0 => Duration::MAX,
            _ if successor.is_some() => REPLACED_CHECK_INTERVAL,
            _ => POD_CHECK_INTERVAL,
        })
    }

    async fn return_blocks(
        &mut self,
        node: &str,
        uid: &str,
        blocks: Vec<&(Name, BlockView)>,
    ) -> Result<(), Failure> {
        tracing::info!(
            node,
            uid,
            blocks = blocks.len(),
            "returning the blocks of a Node that is gone"
        );
        let cluster = self.cluster.clone();
        let deletes = blocks
            .iter()
            .map(|(name, block)| cluster.delete_block(name, &block.id));
        let results: Vec<_> = futures::stream::iter(deletes)
            .buffer_unordered(CONCURRENT_REQUESTS)
            .collect()
            .await;
        let returned = results.iter().filter(|result| result.is_ok()).count();
        self.metrics
            .blocks_returned
            .fetch_add(returned as u64, Relaxed);
        results.into_iter().collect()
    }
}

/// When to look again at blocks that may not return yet.
fn retry_after(known: Duration, grace: Duration, replaced: bool) -> Duration {
    match grace.saturating_sub(known) {
        Duration::ZERO if replaced => REPLACED_CHECK_INTERVAL,
        rest => rest.clamp(Duration::from_millis(200), POD_CHECK_INTERVAL),
    }
}
