//! The parts of this node's blocks that were given away. Flushed before it returns: other nodes use
//! them, whatever becomes of this machine.

use super::{Journal, JournalError, durable, schema};
use ipnet::IpNet;
use plexus_core::ipam::Given;
use plexus_faults::effect;
use rusqlite::params;

impl Journal {
    /// A part is another's from now on, for this agent and every later one.
    pub(crate) fn give(&self, given: &Given) -> Result<(), JournalError> {
        effect("journal.give<");
        let connection = self.lock();
        let result = durable(&connection, true, |tx| {
            tx.pragma_update(None, "user_version", schema::WITH_GIFTS)?;
            tx.prepare_cached(
                "INSERT OR REPLACE INTO gift (network, part, block, node) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                given.network,
                given.part.to_string(),
                given.block.to_string(),
                given.node,
            ])
        });
        drop(connection);
        effect("journal.give>");
        self.written("that a part of a block is given away", result)
    }

    /// The block that a part was given from is no longer this node's, or its network is gone.
    pub(crate) fn forget_gift(&self, given: &Given) -> Result<(), JournalError> {
        effect("journal.forget-gift<");
        let result = self
            .lock()
            .prepare_cached("DELETE FROM gift WHERE network = ?1 AND part = ?2")
            .and_then(|mut delete| delete.execute(params![given.network, given.part.to_string()]));
        effect("journal.forget-gift>");
        self.written("the end of a gift", result)
    }

    /// All of them, in order.
    pub(crate) fn gifts(&self) -> Result<Vec<Given>, JournalError> {
        let connection = self.lock();
        let read = || {
            let mut select = connection.prepare_cached(
                "SELECT network, block, part, node FROM gift ORDER BY network, part",
            )?;
            let rows = select.query_map([], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
            rows.collect::<Result<Vec<(String, String, String, String)>, _>>()
        };
        let rows = read().map_err(|source| self.read_error("what was given away", source))?;
        let parse = |text: &str, part: &str| {
            text.parse::<IpNet>()
                .map_err(|error| JournalError::Unreadable {
                    path: self.path.clone(),
                    key: format!("the gift {part}"),
                    problem: format!("{text:?}: {error}"),
                })
        };
        rows.into_iter()
            .map(|(network, block, part, node)| {
                Ok(Given {
                    network,
                    block: parse(&block, &part)?,
                    part: parse(&part, &part)?,
                    node,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    fn given(part: &str, node: &str) -> Given {
        Given {
            network: "u".to_owned(),
            block: "10.0.0.0/26".parse().unwrap(),
            part: part.parse().unwrap(),
            node: node.to_owned(),
        }
    }

    #[test]
    fn gifts_outlive_the_agent_and_an_older_one_refuses_them() {
        let place = std::env::temp_dir().join(format!("plexus-gifts-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).unwrap();
        let path = place.join("journal.db");
        let format = || -> i64 {
            let connection = Connection::open(&path).unwrap();
            let read = connection.pragma_query_value(None, "user_version", |row| row.get(0));
            read.unwrap()
        };
        // One of before there were gifts.
        drop(Journal::open(&path).unwrap());
        let older = Connection::open(&path).unwrap();
        older.execute_batch("DROP TABLE gift").unwrap();
        drop(older);
        assert_eq!(format(), 1);

        let journal = Journal::open(&path).unwrap();
        assert!(journal.gifts().unwrap().is_empty());
        let version = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let read = journal
            .lock()
            .pragma_query_value(None, "user_version", version);
        assert_eq!(read.unwrap(), 1);
        journal.give(&given("10.0.0.8/30", "n2")).unwrap();
        journal.give(&given("10.0.0.4/32", "n2")).unwrap();
        journal.give(&given("10.0.0.8/30", "n1")).unwrap();
        drop(journal);
        assert_eq!(format(), 2);
        let journal = Journal::open(&path).unwrap();
        let expected = [given("10.0.0.4/32", "n2"), given("10.0.0.8/30", "n1")];
        assert_eq!(journal.gifts().unwrap(), expected);
        journal.forget_gift(&expected[0]).unwrap();
        assert_eq!(journal.gifts().unwrap(), expected[1..]);
        std::fs::remove_dir_all(place).unwrap();
    }
}
