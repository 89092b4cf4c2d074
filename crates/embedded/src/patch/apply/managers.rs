//! Who owns what: `metadata.managedFields`, read and written.

use super::compare::Changes;
use super::fields::Fields;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// More owners by plain writes than this are put together, the oldest first.
const MOST_UPDATERS: usize = 10;

/// The owners of an object's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Managers {
    pub(super) owned: BTreeMap<Manager, Owned>,
}

/// An owner. The same name owns apart what it applied and what it wrote otherwise, and apart per subresource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) operation: Operation,
    /// Of plain writes only: who applies is the same in every version.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// The fields that a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) fields: Fields,
    pub(super) api_version: String,
    pub(super) time: Option<String>,
}

impl Managers {
    /// From `metadata.managedFields`; `None` if it is not what it should be.
    pub(super) fn parse(entries: &Value) -> Option<Self> {
        let mut managers = Self::default();
        for entry in entries.as_array()? {
            let (manager, owned) = parse_entry(entry)?;
            let _ = managers.owned.insert(manager, owned);
        }
        Some(managers)
    }

    /// Those of an object; none if it says none, or nonsense.
    pub(super) fn of(object: &Value) -> Self {
        let entries = object.pointer("/metadata/managedFields");
        entries.and_then(Self::parse).unwrap_or_default()
    }

    /// As `metadata.managedFields`.
    pub(super) fn wire(&self) -> Value {
        let mut entries: Vec<(&Manager, &Owned)> = self.owned.iter().collect();
        entries.sort_by_key(|(manager, owned)| {
            let time = owned.time.as_deref().unwrap_or_default();
            let version = owned.api_version.as_str();
            (
                manager.operation,
                time,
                &manager.name,
                version,
                &manager.subresource,
            )
        });
        entries.into_iter().map(entry).collect()
    }

    /// What others own of that which changes, by owner.
    pub(super) fn conflicts(&self, me: &Manager, changes: &Changes) -> Vec<(Manager, Fields)> {
        let changed = changes.modified.union(&changes.added);
        let others = self.owned.iter().filter(|(manager, _)| *manager != me);
        let shared = others.map(|(manager, owned)| {
            let fields = owned.fields.intersection(&changed);
            (manager.clone(), fields)
        });
        shared.filter(|(_, fields)| !fields.is_empty()).collect()
    }

    /// Nobody but `me` owns any longer what has changed or gone.
    pub(super) fn release(&mut self, me: Option<&Manager>, changes: &Changes) {
        let changed = changes.modified.union(&changes.added);
        for (manager, owned) in &mut self.owned {
            if Some(manager) == me {
                continue;
            }
            owned.fields = owned
                .fields
                .difference(&changed)
                .difference(&changes.removed);
        }
        self.owned.retain(|_, owned| !owned.fields.is_empty());
    }

    /// Everything that anybody owns.
    pub(super) fn all(&self) -> Fields {
        let sets = self.owned.values().map(|owned| &owned.fields);
        sets.fold(Fields::default(), |all, set| all.union(set))
    }

    /// Puts the oldest owners by plain writes together until there are not too many, those of each
    /// version on their own.
    pub(super) fn cap(&mut self) {
        let mut updaters: Vec<(Option<String>, Manager)> = self
            .owned
            .iter()
            .filter(|(manager, _)| manager.operation == Operation::Update)
            .map(|(manager, owned)| (owned.time.clone(), manager.clone()))
            .collect();
        updaters.sort();
        let mut count = updaters.len();
        let mut firsts: BTreeMap<String, Manager> = BTreeMap::new();
        for (_, manager) in updaters {
            if count <= MOST_UPDATERS {
                return;
            }
            let version = manager.api_version.clone();
            let Some(first) = firsts.get(&version) else {
                let _ = firsts.insert(version, manager);
                continue;
            };
            let bucket = Manager {
                name: "ancient-changes".to_owned(),
                operation: Operation::Update,
                api_version: version,
                subresource: String::new(),
            };
            if !self.owned.contains_key(&bucket)
                && let Some(owned) = self.owned.remove(first)
            {
                let _ = self.owned.insert(bucket.clone(), owned);
            }
            if manager == bucket {
                continue;
            }
            if let (Some(owned), Some(into)) =
                (self.owned.remove(&manager), self.owned.get_mut(&bucket))
            {
                into.fields = into.fields.union(&owned.fields);
                into.time = owned.time;
                count -= 1;
            }
        }
    }
}

/// As conflicts name an owner.
impl fmt::Display for Manager {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(out, " with subresource {:?}", self.subresource)?;
        }
        if self.operation == Operation::Update {
            write!(out, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

fn parse_entry(entry: &Value) -> Option<(Manager, Owned)> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return None,
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
        return None;
    }
    let manager = Manager {
        name: text("manager").to_owned(),
        operation,
        api_version: match operation {
            Operation::Apply => String::new(),
            Operation::Update => api_version.to_owned(),
        },
        subresource: text("subresource").to_owned(),
    };
    let owned = Owned {
        fields: match entry.get("fieldsV1") {
            None | Some(Value::Null) => Fields::default(),
            Some(fields) => Fields::parse(fields)?,
        },
        api_version: api_version.to_owned(),
        time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
    };
    Some((manager, owned))
}

fn entry((manager, owned): (&Manager, &Owned)) -> Value {
    let mut entry = json!({
        "manager": manager.name,
        "operation": match manager.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        },
        "apiVersion": owned.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields.wire(),
    });
    if !manager.subresource.is_empty() {
        entry["subresource"] = manager.subresource.as_str().into();
    }
    if let Some(time) = &owned.time {
        entry["time"] = time.as_str().into();
    }
    entry
}
