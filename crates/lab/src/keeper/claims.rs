//! Pods that ask for devices (`spec.resourceClaims`). A lab has no DRA driver, neither ours, which is not
//! part of this version, nor anybody else's. So such a pod waits, whosever driver it asks: it never starts
//! without what it asked for. Decides; does nothing.

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use plexus_api::later::DRA_DRIVER;

/// Why a pod waits for its claims; none if it has none.
pub(super) fn waits(pod: &Pod) -> Option<String> {
    let claims = pod.spec.as_ref()?.resource_claims.as_ref()?;
    let named: Vec<String> = claims.iter().map(claim_name).collect();
    (!named.is_empty()).then(|| {
        format!(
            "it waits for {}: a lab has no DRA driver that could prepare claims, neither {DRA_DRIVER}, which is not \
             part of this version, nor any other; for a network, name it in an annotation of the pod instead \
             (k8s.v1.cni.cncf.io/networks or plexus.dev/networks)",
            named.join(", ")
        )
    })
}

fn claim_name(claim: &PodResourceClaim) -> String {
    match (
        &claim.resource_claim_name,
        &claim.resource_claim_template_name,
    ) {
        (Some(name), _) => format!("ResourceClaim {name}"),
        (None, Some(name)) => format!("a claim by ResourceClaimTemplate {name}"),
        (None, None) => format!("claim {}, which names none", claim.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whoever_asks_for_a_claim_waits() {
        let pod = |claims: serde_json::Value| -> Pod {
            let spec = json!({"containers": [], "resourceClaims": claims});
            serde_json::from_value(json!({"spec": spec})).unwrap()
        };
        let claims = json!([{"name": "a", "resourceClaimName": "nic"},
            {"name": "b", "resourceClaimTemplateName": "gpus"}, {"name": "c"}]);
        let why = waits(&pod(claims)).unwrap();
        let named =
            "ResourceClaim nic, a claim by ResourceClaimTemplate gpus, claim c, which names none: ";
        assert!(why.contains(named), "{why}");
        assert_eq!(waits(&pod(json!([]))), None);
        assert_eq!(waits(&Pod::default()), None);
    }
}
