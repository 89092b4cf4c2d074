//! What others are told of this node's attachments: records in the API and whose they are, queries, metrics, health.

pub(crate) mod health;
mod hooks;
pub(crate) mod metrics;
pub(crate) mod owner;
pub(crate) mod provider;
pub(crate) mod query;
pub(crate) mod records;
pub(crate) mod view;
