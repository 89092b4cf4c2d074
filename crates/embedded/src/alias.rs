//! A kind under a second name: what was written as one is stored as the other, and shown again as
//! it was written. All fields are the same in both. Knows names, never what the objects mean.
//!
//! ```text
//!   v1 Network ──inward──► plexus.dev/v1alpha1 Network ──outward──► v1 Network
//! ```

use crate::kinds::{Kind, Storage, View};
use serde_json::Value;

/// A kind in paths and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Empty for the core.
    pub group: &'static str,
    /// Such as `v1`.
    pub version: &'static str,
    /// Such as `Network`.
    pub kind: &'static str,
    /// Such as `networks`.
    pub plural: &'static str,
}

/// One kind that is stored as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name that clients use.
    pub served: Name,
    /// The kind in whose table the objects are.
    pub stored: Name,
}

/// The `Network` that the proposal for tenant networks put into the core API, stored as ours. Its
/// fields (`spec.provider`, `uuid`, `subnets`, `status.phase`) are where ours are.
pub const CORE_NETWORK: Alias = Alias {
    served: Name {
        group: "",
        version: "v1",
        kind: "Network",
        plural: "networks",
    },
    stored: Name {
        group: "plexus.dev",
        version: "v1alpha1",
        kind: "Network",
        plural: "networks",
    },
};

impl Alias {
    /// Group, version and plural of the kind that is stored.
    #[must_use]
    pub fn stored_as(&self) -> (&str, &str, &str) {
        (self.stored.group, self.stored.version, self.stored.plural)
    }

    /// The alias as a kind of its own, made from the one that is stored.
    ///
    /// # Errors
    /// The stored kind is itself shown through another one.
    pub fn kind(self, stored: &Kind) -> Result<Kind, String> {
        if !matches!(stored.storage, Storage::Own) {
            return Err(format!(
                "{} is not stored as itself, it cannot have an alias",
                stored.group_resource()
            ));
        }
        let mut kind = stored.clone();
        kind.group = self.served.group.to_owned();
        kind.version = self.served.version.to_owned();
        kind.kind = self.served.kind.to_owned();
        kind.plural = self.served.plural.to_owned();
        kind.singular = self.served.kind.to_lowercase();
        kind.list_kind = format!("{}List", self.served.kind);
        kind.short.clear();
        kind.categories.clear();
        kind.storage = Storage::View(View::alias(self));
        Ok(kind)
    }

    /// An object of the alias in the form in which it is stored.
    #[must_use]
    pub fn inward(&self, object: &Value) -> Value {
        translated(object, &self.stored)
    }

    /// A stored object in the form of the alias.
    #[must_use]
    pub fn outward(&self, stored: &Value) -> Value {
        translated(stored, &self.served)
    }
}

fn translated(object: &Value, name: &Name) -> Value {
    let mut new = object.clone();
    let Some(fields) = new.as_object_mut() else {
        return new;
    };
    let version = match name.group {
        "" => name.version.to_owned(),
        group => format!("{group}/{}", name.version),
    };
    fields.insert("apiVersion".to_owned(), version.into());
    fields.insert("kind".to_owned(), name.kind.into());
    new
}

#[cfg(test)]
mod tests {
    use super::CORE_NETWORK;
    use serde_json::json;

    #[test]
    fn a_network_of_the_core_is_ours_and_comes_back_as_written() {
        let written = json!({
            "apiVersion": "v1", "kind": "Network", "metadata": {"name": "net1"},
            "spec": {
                "provider": "mycorp/fancy-network-provider",
                "uuid": "2a9aafcc-6041-4fb8-9006-1f6095102850",
                "subnets": {"subnet1": {"cidr": "192.168.0.0/24", "gateway": "192.168.0.1"}},
            },
            "status": {"phase": "Active"},
        });
        let stored = CORE_NETWORK.inward(&written);
        assert_eq!(stored["apiVersion"], "plexus.dev/v1alpha1");
        assert_eq!(stored["spec"], written["spec"]);
        assert_eq!(CORE_NETWORK.outward(&stored), written);
    }

    #[test]
    fn what_is_no_object_stays_what_it_is() {
        assert_eq!(CORE_NETWORK.inward(&json!([1])), json!([1]));
    }
}
