//! The kinds that we work with must be served before anything is watched. Ours come with the
//! manifest and are waited for; the NetworkAttachmentDefinition is made if nobody else has. What is
//! there is never changed: it may be somebody else's.

use crate::FIELD_MANAGER;
use crate::health::Readiness;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition as Crd;
use kube::api::{Api, PostParams};
use plexus_api::objects::{VERSION, crds};
use std::time::Duration;

/// Ours that the controller works with.
const OURS: [&str; 3] = [
    "networks.plexus.dev",
    "blocks.plexus.dev",
    "podattachments.plexus.dev",
];
const NAD: &str = "network-attachment-definitions.k8s.cni.cncf.io";
/// How often the controller looks for missing definitions.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
const COMPONENT: &str = "crds";

/// Returns once all are served.
pub(crate) async fn wait(client: &kube::Client, readiness: &Readiness) {
    let api: Api<Crd> = Api::all(client.clone());
    let mut last_reason = String::new();
    readiness.not_yet(COMPONENT, "not looked for yet");
    loop {
        let result = tokio::time::timeout(REQUEST_TIMEOUT, missing(&api)).await;
        let Some(why) =
            result.unwrap_or_else(|_| Some("the API server does not answer".to_owned()))
        else {
            readiness.ready(COMPONENT);
            return;
        };
        if why != last_reason {
            tracing::warn!(%why, "waiting for the kinds that Plexus works with");
            last_reason.clone_from(&why);
        }
        readiness.not_yet(COMPONENT, why);
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// What is missing still; none if nothing is.
async fn missing(api: &Api<Crd>) -> Option<String> {
    let mut reasons = Vec::new();
    for name in OURS {
        match api.get_opt(name).await {
            Ok(Some(crd)) => reasons.extend(problem(&crd, VERSION)),
            Ok(None) => reasons.push(format!(
                "there is no CustomResourceDefinition {name}: apply Plexus's manifest"
            )),
            Err(error) => return Some(format!("cannot look for {name}: {error}")),
        }
    }
    match api.get_opt(NAD).await {
        Ok(Some(crd)) => reasons.extend(problem(&crd, "v1")),
        Ok(None) => reasons.push(create(api).await),
        Err(error) => return Some(format!("cannot look for {NAD}: {error}")),
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

async fn create(api: &Api<Crd>) -> String {
    let Some(crd) = crds()
        .into_iter()
        .find(|crd| crd.metadata.name.as_deref() == Some(NAD))
    else {
        return format!("there is no CustomResourceDefinition {NAD}");
    };
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    match api.create(&params, &crd).await {
        Ok(_) => {
            tracing::info!(crd = NAD, "created");
            format!("{NAD} was just created")
        }
        Err(kube::Error::Api(status)) if status.code == 409 => {
            format!("{NAD} was just created by another")
        }
        Err(error) => format!("cannot create {NAD}: {error}"),
    }
}

/// Why objects of this version cannot be used yet.
fn problem(crd: &Crd, version: &str) -> Option<String> {
    let name = crd.metadata.name.as_deref().unwrap_or("");
    let served = crd
        .spec
        .versions
        .iter()
        .any(|one| one.name == version && one.served);
    if !served {
        return Some(format!(
            "{name} does not serve version {version}: it is somebody else's and is left as it is"
        ));
    }
    let mut conditions = crd
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let established = conditions.any(|one| one.type_ == "Established" && one.status == "True");
    (!established).then(|| format!("{name} is not established yet"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn crd(versions: serde_json::Value, established: &str) -> Crd {
        serde_json::from_value(json!({
            "metadata": {"name": NAD},
            "spec": {"group": "k8s.cni.cncf.io", "scope": "Namespaced", "names": {"kind": "N", "plural": "n"}, "versions": versions},
            "status": {"conditions": [{"type": "Established", "status": established}]}
        }))
        .unwrap()
    }

    #[test]
    fn a_foreign_definition_that_serves_is_enough() {
        let v1 = json!({"name": "v1", "served": true, "storage": true});
        let beta = json!({"name": "v1beta1", "served": true, "storage": true});
        let off = json!({"name": "v1", "served": false, "storage": false});
        assert_eq!(problem(&crd(json!([v1, beta]), "True"), "v1"), None);
        assert!(
            problem(&crd(json!([v1]), "False"), "v1")
                .unwrap()
                .contains("not established")
        );
        for versions in [json!([beta]), json!([beta, off])] {
            assert!(
                problem(&crd(versions, "True"), "v1")
                    .unwrap()
                    .contains("does not serve version v1")
            );
        }
    }
}
