//! Plans as the commands that a person would type.

use super::{NodePlan, PodPlan};

/// A pod's plan.
pub fn pod_text(plan: &PodPlan) -> String {
    let _ = plan;
    String::new()
}

/// A node's plan.
pub fn node_text(plan: &NodePlan) -> String {
    let _ = plan;
    String::new()
}
