//! Who reaches whom: every pod pings every address of every other pod, and what is seen is compared with what
//! must be: members of a network reach each other, and nobody else reaches an overlay. Looks at pods through
//! the API and the kernel; changes nothing.

mod expect;
mod gather;
mod matrix;
mod measure;

pub use expect::Expected;
pub use matrix::{Cell, Matrix, Unseen};

use crate::api;
use crate::error::LabError;
use crate::layout::Layout;
use crate::up::need_root;

/// Measures the whole matrix.
pub fn ping_all(layout: &Layout) -> Result<Matrix, LabError> {
    need_root()?;
    let gather::Gathered { members, unseen } =
        api::block_on(|client| gather::gather(layout, client), layout)?;
    let mut cells = Vec::new();
    let mut probes = Vec::new();
    for (to, target) in members.iter().enumerate() {
        for attachment in &target.attachments {
            for address in &attachment.addresses {
                for (from, source) in members.iter().enumerate() {
                    if from == to {
                        continue;
                    }
                    let expected = expect::expected(source, target, attachment);
                    let cell = cells.len();
                    cells.push(Cell {
                        from: source.pod.clone(),
                        to: target.pod.clone(),
                        network: attachment.network.clone(),
                        address: *address,
                        expected,
                        seen: false,
                    });
                    for link in expect::ways(source, target, attachment) {
                        probes.push(measure::Probe {
                            from: source.netns.clone(),
                            link,
                            to: target.netns.clone(),
                            address: *address,
                            cell,
                            expected,
                        });
                    }
                }
            }
        }
    }
    for cell in measure::measure(&probes)? {
        if let Some(cell) = cells.get_mut(cell) {
            cell.seen = true;
        }
    }
    Ok(Matrix { cells, unseen })
}
