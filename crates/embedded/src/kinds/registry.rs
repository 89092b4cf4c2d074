//! All kinds, found by where they are in the API.

use super::{Kind, Storage, builtin, crd};
use crate::alias::Alias;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All kinds of a server. Iteration is sorted by group, version and plural; the core is first.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    by_resource: BTreeMap<(String, String, String), Arc<Kind>>,
}

impl Kinds {
    /// The kinds that every server has.
    ///
    /// # Errors
    /// A definition that comes with this room is not one.
    pub fn builtin() -> Result<Self, String> {
        let mut kinds = Self::default();
        for kind in builtin::all() {
            kinds.add(kind)?;
        }
        for text in crd::MORE {
            let definition: Value =
                serde_json::from_str(text).map_err(|error| error.to_string())?;
            kinds = kinds.with_crd(&definition)?;
        }
        Ok(kinds)
    }

    /// These, and the kind of a definition in every version that it serves.
    ///
    /// # Errors
    /// It is not a definition, or its kind is there already.
    pub fn with_crd(mut self, definition: &Value) -> Result<Self, String> {
        for kind in crd::kinds(definition)? {
            self.add(kind)?;
        }
        Ok(self)
    }

    /// These, and a kind that is another one under a second name.
    ///
    /// # Errors
    /// The other one is not there, or the alias's own place is taken.
    pub fn with_alias(mut self, alias: Alias) -> Result<Self, String> {
        let (group, version, plural) = alias.stored_as();
        let stored = self
            .get(group, version, plural)
            .ok_or_else(|| format!("no {plural} in {group}/{version} to make an alias of"))?;
        let kind = alias.kind(stored)?;
        self.add(kind)?;
        Ok(self)
    }

    /// The kind that paths name like this.
    #[must_use]
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let resource = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.by_resource.get(&resource)
    }

    /// By what objects say of themselves.
    #[must_use]
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.iter()
            .find(|known| known.group == group && known.version == version && known.kind == kind)
    }

    /// Every kind in every version.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.by_resource.values()
    }

    /// The kind in whose table the objects of this one are.
    #[must_use]
    pub fn stored_as<'a>(&'a self, kind: &'a Arc<Kind>) -> &'a Arc<Kind> {
        match &kind.storage {
            Storage::View(view) => self
                .get(&view.group, &view.version, &view.plural)
                .unwrap_or(kind),
            Storage::Own | Storage::Answered => kind,
        }
    }

    fn add(&mut self, kind: Kind) -> Result<(), String> {
        let resource = (
            kind.group.clone(),
            kind.version.clone(),
            kind.plural.clone(),
        );
        if self.by_resource.contains_key(&resource) {
            return Err(format!(
                "{} in version {:?} is there already",
                kind.group_resource(),
                kind.version
            ));
        }
        self.by_resource.insert(resource, Arc::new(kind));
        Ok(())
    }
}
