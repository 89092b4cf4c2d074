//! What a pod may leave behind on its node.

use crate::common::on;
use plexus_kubekit::Cluster;
use serde_json::Value;

/// Rows of the agent's journal with this word in them: a sandbox's id, or a pod's `namespace/name`.
pub(crate) fn journal(kube: &dyn Cluster, node: &str, word: &str) -> usize {
    let python = format!(
        "import sqlite3, sys\n\
         db = sqlite3.connect(sys.argv[1] + \"/journal.db\")\n\
         tables = [t for (t,) in db.execute(\"select name from sqlite_master where type = 0x7461626c65 or type = \\\"table\\\"\")]\n\
         assert tables\n\
         rows = [row for table in tables for row in db.execute(f\"select * from {{table}}\")]\n\
         print(sum(any(\"{word}\" in (c.decode(\"latin-1\") if isinstance(c, bytes) else str(c)) for c in row) for row in rows))"
    );
    // A copy: the agent has the journal for itself.
    let journal = kube.files(node).expect("known").journal;
    let script = format!(
        "copy=$(mktemp -d) && cp {journal} {journal}-wal $copy && python3 -c '{python}' $copy; rm -r $copy"
    );
    let count = on(kube, node, &script);
    count.trim().parse().expect("a number")
}

/// The node's links, except those that other tests' pods have: the given names.
pub(crate) fn is_there(kube: &dyn Cluster, node: &str, link: &str) -> bool {
    let found = kube.on_node(node, &["ip", "link", "show", "dev", link]);
    found.expect("it runs").ok()
}

/// Addresses in use in all blocks of a network, as their owners count them.
pub(crate) fn allocated(kube: &dyn Cluster, network_uid: &str) -> u64 {
    let blocks = kube.list("plexus.dev/v1alpha1", "Block", "");
    let blocks = blocks.expect("Blocks");
    let of = blocks
        .iter()
        .filter(|block| block["spec"]["network"]["uid"] == network_uid);
    of.map(|block| block["status"]["allocated"].as_u64().unwrap_or(0))
        .sum()
}

/// The UID of an object.
pub(crate) fn uid(object: &Value) -> String {
    let uid = object["metadata"]["uid"].as_str();
    uid.expect("a UID").to_owned()
}
