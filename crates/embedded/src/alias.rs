//! A kind under a second name: what was written as one is stored as the other, and shown again as
//! it was written. A table says which kind is which and where fields have other places; everything
//! that the table does not name is the same in both. Knows names, never what the objects mean.
//!
//! ```text
//!   v1 Network ──inward──► plexus.dev/v1alpha1 Network ──outward──► v1 Network
//! ```

use crate::kinds::{Kind, Storage, View};
use serde_json::{Map, Value};

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
    pub shown: Name,
    /// The kind in whose table the objects are.
    pub stored: Name,
    /// Fields that are elsewhere: (place in `shown`, place in `stored`), with dots. Both from the
    /// top of the object; neither inside another one of the table.
    pub fields: &'static [(&'static str, &'static str)],
}

/// The `Network` that the proposal for tenant networks put into the core API, stored as ours. Its
/// fields (`spec.provider`, `uuid`, `subnets`, `status.phase`) are where ours are.
pub const CORE_NETWORK: Alias = Alias {
    shown: Name {
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
    fields: &[],
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
        kind.group = self.shown.group.to_owned();
        kind.version = self.shown.version.to_owned();
        kind.kind = self.shown.kind.to_owned();
        kind.plural = self.shown.plural.to_owned();
        kind.singular = self.shown.kind.to_lowercase();
        kind.list_kind = format!("{}List", self.shown.kind);
        kind.short.clear();
        kind.categories.clear();
        kind.storage = Storage::View(View::alias(self));
        Ok(kind)
    }

    /// An object of the alias in the form in which it is stored.
    #[must_use]
    pub fn inward(&self, object: &Value) -> Value {
        let moves = self.fields.iter().copied();
        translated(object, &self.stored, moves)
    }

    /// A stored object in the form of the alias.
    #[must_use]
    pub fn outward(&self, stored: &Value) -> Value {
        let moves = self.fields.iter().map(|&(shown, stored)| (stored, shown));
        translated(stored, &self.shown, moves)
    }
}

fn translated<'a>(
    object: &Value,
    name: &Name,
    moves: impl Iterator<Item = (&'a str, &'a str)>,
) -> Value {
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
    let taken: Vec<(&str, Value)> = moves
        .filter_map(|(from, to)| Some((to, take(&mut new, from)?)))
        .collect();
    for (to, value) in taken {
        put(&mut new, to, value);
    }
    new
}

/// Removes the field, and every parent that it leaves empty.
fn take(object: &mut Value, path: &str) -> Option<Value> {
    let fields = object.as_object_mut()?;
    match path.split_once('.') {
        None => fields.remove(path),
        Some((first, rest)) => {
            let inner = fields.get_mut(first)?;
            let value = take(inner, rest)?;
            if inner.as_object().is_some_and(Map::is_empty) {
                fields.remove(first);
            }
            Some(value)
        }
    }
}

fn put(object: &mut Value, path: &str, value: Value) {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match path.split_once('.') {
        None => {
            fields.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = fields.entry(first).or_insert(Value::Null);
            put(inner, rest, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Alias, CORE_NETWORK};
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
    fn fields_with_another_place_move_and_move_back() {
        let alias = Alias {
            fields: &[
                ("spec.a.x", "spec.b"),
                ("spec.b", "spec.c.d"),
                ("top", "spec.top"),
            ],
            ..CORE_NETWORK
        };
        let written = json!({
            "apiVersion": "v1", "kind": "Network", "top": [1],
            "spec": {"a": {"x": {"deep": 1}}, "b": "was b", "same": true},
        });
        let stored = alias.inward(&written);
        let expected = json!({"b": {"deep": 1}, "c": {"d": "was b"}, "same": true, "top": [1]});
        assert_eq!(stored["spec"], expected);
        assert!(stored.get("top").is_none());
        assert_eq!(alias.outward(&stored), written);
    }

    #[test]
    fn what_is_no_object_stays_what_it_is() {
        assert_eq!(CORE_NETWORK.inward(&json!([1])), json!([1]));
    }
}
