//! The parts of this node's blocks that were given away. Flushed before it returns: other nodes use
//! them, whatever becomes of this machine.

use super::{Journal, JournalError, durable};
use ipnet::IpNet;
use plexus_core::ipam::Donation;
use plexus_faults::effect;
use rusqlite::params;

impl Journal {
    /// A part is another's from now on, for this agent and every later one.
    pub(crate) fn put_donation(&self, donation: &Donation) -> Result<(), JournalError> {
        effect("journal.give<");
        let connection = self.lock();
        let result = durable(&connection, true, |tx| {
            tx.prepare_cached(
                "INSERT OR REPLACE INTO gift (network, part, block, node) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                donation.network,
                donation.part.to_string(),
                donation.block.to_string(),
                donation.node,
            ])
        });
        drop(connection);
        effect("journal.give>");
        self.written("that a part of a block is given away", result)
    }

    /// The block that a part was given from is no longer this node's, or its network is gone.
    pub(crate) fn delete_donation(&self, donation: &Donation) -> Result<(), JournalError> {
        effect("journal.forget-gift<");
        let result = self.execute(
            "DELETE FROM gift WHERE network = ?1 AND part = ?2",
            params![donation.network, donation.part.to_string()],
        );
        effect("journal.forget-gift>");
        self.written("the end of a gift", result)
    }

    /// All of them, in order.
    pub(crate) fn donations(&self) -> Result<Vec<Donation>, JournalError> {
        let rows: Vec<(String, String, String, String)> = self.select(
            "what was given away",
            "SELECT network, block, part, node FROM gift ORDER BY network, part",
            [],
        )?;
        let parse = |text: &str, part: &str| {
            let parsed = text.parse::<IpNet>();
            parsed.map_err(|error| JournalError::Unreadable {
                path: self.path.clone(),
                key: format!("the gift {part}"),
                problem: format!("{text:?}: {error}"),
            })
        };
        let donations = rows.into_iter().map(|(network, block, part, node)| {
            Ok(Donation {
                network,
                block: parse(&block, &part)?,
                part: parse(&part, &part)?,
                node,
            })
        });
        donations.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn donation(part: &str, node: &str) -> Donation {
        Donation {
            network: "u".to_owned(),
            block: "10.0.0.0/26".parse().unwrap(),
            part: part.parse().unwrap(),
            node: node.to_owned(),
        }
    }

    #[test]
    fn gifts_outlive_the_agent() {
        let fixture = std::env::temp_dir().join(format!("plexus-gifts-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&fixture);
        std::fs::create_dir_all(&fixture).unwrap();
        let path = fixture.join("journal.db");
        let journal = Journal::open(&path).unwrap();
        assert!(journal.donations().unwrap().is_empty());
        journal
            .put_donation(&donation("10.0.0.8/30", "n2"))
            .unwrap();
        journal
            .put_donation(&donation("10.0.0.4/32", "n2"))
            .unwrap();
        journal
            .put_donation(&donation("10.0.0.8/30", "n1"))
            .unwrap();
        drop(journal);
        let journal = Journal::open(&path).unwrap();
        let expected = [donation("10.0.0.4/32", "n2"), donation("10.0.0.8/30", "n1")];
        assert_eq!(journal.donations().unwrap(), expected);
        journal.delete_donation(&expected[0]).unwrap();
        assert_eq!(journal.donations().unwrap(), expected[1..]);
        std::fs::remove_dir_all(fixture).unwrap();
    }
}
