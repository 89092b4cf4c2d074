//! What multi-NIC networks ask of the API server: their blocks, their definitions, their CIDR, their status.

use crate::FIELD_MANAGER;
use crate::api::{Cluster, Failure, manager, post};
use crate::cache::{AnyNad, Identity, MultiNicView, Name, View};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use plexus_api::objects::{
    Block, BlockNic, BlockSpec, Cidr, CidrSpec, GENERATED_LABEL, MultiNicNetwork,
    MultiNicNetworkStatus, NETWORK_LABEL, NODE_LABEL,
};
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "net.cogadvisor.io/v1";
pub(crate) const KIND: &str = "MultiNicNetwork";

impl Cluster {
    /// Makes a Block.
    pub(crate) async fn create_block(&self, spec: &BlockSpec) -> Result<(), Failure> {
        let name = BlockSpec::name(&spec.network.uuid, &spec.cidr);
        let mut block = Block::new(&name, spec.clone());
        let labels = [
            (NODE_LABEL, &spec.node),
            (NETWORK_LABEL, &spec.network.uuid),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.clone()));
        block.meta_mut().labels = Some(labels.into());
        let api: Api<Block> = Api::all(self.client.clone());
        let params = post();
        let sent = api.create(&params, &block);
        let made = self.answer("create", format!("Block {name}"), sent).await;
        made.map(drop)
    }

    /// Says something else of a Block's NIC, if it is still that Block.
    pub(crate) async fn patch_block_nic(
        &self,
        name: &str,
        id: &Identity,
        nic: &BlockNic,
    ) -> Result<(), Failure> {
        let mut value = json!(nic);
        for key in ["via", "retired"] {
            if value.get(key).is_none() {
                value[key] = Value::Null;
            }
        }
        let patch = json!({
            "metadata": {"resourceVersion": id.version, "uid": id.uid},
            "spec": {"nic": value},
        });
        let api: Api<PartialObjectMeta<Block>> = Api::all(self.client.clone());
        let (params, patch) = (manager(), Patch::Merge(&patch));
        let sent = api.patch(name, &params, &patch);
        let written = self.answer("change", format!("Block {name}"), sent).await;
        written.map(drop)
    }

    /// Writes a MultiNicNetwork's status, if it is still the version that was read.
    pub(crate) async fn set_multi_nic_status(
        &self,
        name: &str,
        id: &Identity,
        status: &MultiNicNetworkStatus,
    ) -> Result<MultiNicView, Failure> {
        let patch =
            json!({"metadata": {"resourceVersion": id.version, "uid": id.uid}, "status": status});
        let api = self.multi_nics();
        let (params, patch) = (manager(), Patch::Merge(&patch));
        let sent = api.patch_status(name, &params, &patch);
        let object = format!("{KIND} {name}");
        let written = self.answer("write the status of", object, sent).await;
        written.map(MultiNicView::of)
    }

    /// Writes its finalizers, if it is still the version that was read.
    pub(crate) async fn set_multi_nic_finalizers(
        &self,
        name: &str,
        id: &Identity,
        finalizers: &[String],
    ) -> Result<MultiNicView, Failure> {
        let patch = json!({"metadata":
            {"resourceVersion": id.version, "uid": id.uid, "finalizers": finalizers}});
        let api = self.multi_nics();
        let (params, patch) = (manager(), Patch::Merge(&patch));
        let sent = api.patch(name, &params, &patch);
        let written = self.answer("change", format!("{KIND} {name}"), sent).await;
        written.map(MultiNicView::of)
    }

    /// Whether there is such a network now, and its UID.
    pub(crate) async fn multi_nic_uid(&self, name: &str) -> Result<Option<String>, Failure> {
        let api: Api<PartialObjectMeta<MultiNicNetwork>> = Api::all(self.client.clone());
        let there = self.uid_of(api, KIND, name).await?;
        Ok(there.and_then(|network| network.metadata.uid))
    }

    /// Makes the NetworkAttachmentDefinition of a network in a namespace.
    pub(crate) async fn create_definition(
        &self,
        at: &Name,
        uid: &str,
        config: &str,
    ) -> Result<(), Failure> {
        let definition = json!({
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {
                "name": at.name, "namespace": at.namespace,
                "labels": {GENERATED_LABEL: "true"},
                "ownerReferences": [owner(&at.name, uid)],
            },
            "spec": {"config": config},
        });
        let Ok(definition) = serde_json::from_value::<DynamicObject>(definition) else {
            return Ok(());
        };
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &at.namespace, &definitions());
        let params = post();
        let sent = api.create(&params, &definition);
        let object = format!("NetworkAttachmentDefinition {at}");
        self.answer("create", object, sent).await.map(drop)
    }

    /// Writes the configuration of one, if it is still the version that was read.
    pub(crate) async fn set_definition(
        &self,
        at: &Name,
        id: &Identity,
        config: &str,
    ) -> Result<(), Failure> {
        let patch = json!({
            "metadata": {"resourceVersion": id.version, "uid": id.uid},
            "spec": {"config": config},
        });
        let api: Api<PartialObjectMeta<AnyNad>> =
            Api::namespaced(self.client.clone(), &at.namespace);
        let (params, patch) = (manager(), Patch::Merge(&patch));
        let sent = api.patch(&at.name, &params, &patch);
        let object = format!("NetworkAttachmentDefinition {at}");
        self.answer("change", object, sent).await.map(drop)
    }

    /// Deletes one, if it is this one.
    pub(crate) async fn delete_definition(&self, at: &Name, uid: &str) -> Result<(), Failure> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &at.namespace, &definitions());
        let object = format!("NetworkAttachmentDefinition {at}");
        self.delete(&api, object, &at.name, uid, None).await
    }

    /// The CIDR of a network, asked for now.
    pub(crate) async fn cidr(&self, name: &str) -> Result<Option<CidrSpec>, Failure> {
        let api: Api<DeserializeGuard<Cidr>> = Api::all(self.client.clone());
        let found = api.get_opt(name);
        let found = self.answer("read", format!("CIDR {name}"), found).await?;
        // One that cannot be read is written anew.
        Ok(found.and_then(|found| found.0.ok()).map(|cidr| cidr.spec))
    }

    /// Makes the CIDR of a network what it should be.
    pub(crate) async fn apply_cidr(
        &self,
        name: &str,
        uid: &str,
        spec: &CidrSpec,
    ) -> Result<(), Failure> {
        let mut cidr = Cidr::new(name, spec.clone());
        cidr.meta_mut().owner_references = Some(vec![owner(name, uid)]);
        let api: Api<Cidr> = Api::all(self.client.clone());
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let patch = Patch::Apply(&cidr);
        let sent = api.patch(name, &params, &patch);
        let written = self.answer("apply", format!("CIDR {name}"), sent).await;
        written.map(drop)
    }

    /// Deletes the CIDR that was made for this network, if it is there.
    pub(crate) async fn delete_cidr(&self, name: &str, network: &str) -> Result<(), Failure> {
        let api: Api<PartialObjectMeta<Cidr>> = Api::all(self.client.clone());
        let Some(found) = self.uid_of(api.clone(), "CIDR", name).await? else {
            return Ok(());
        };
        let mut owners = found.metadata.owner_references.iter().flatten();
        let Some(uid) = found
            .metadata
            .uid
            .as_ref()
            .filter(|_| owners.any(|one| one.uid == network))
        else {
            return Ok(());
        };
        self.delete(&api, format!("CIDR {name}"), name, uid, None)
            .await
    }

    fn multi_nics(&self) -> Api<DeserializeGuard<MultiNicNetwork>> {
        Api::all(self.client.clone())
    }
}

fn owner(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    }
}

fn definitions() -> ApiResource {
    ApiResource::erase::<AnyNad>(&())
}
