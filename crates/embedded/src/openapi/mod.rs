//! The server's kinds as OpenAPI v3: an index, and a document per group and version. `kubectl`
//! looks there whether the server checks fields before it creates or applies anything, and explains
//! kinds and their fields from it.
//!
//! Core kinds are described by their types, all others by their definitions. The documents are
//! made when first asked for. There is no v2: nobody needs it.

mod document;
mod merging;
mod operations;
mod schemas;

#[cfg(test)]
mod tests;

use crate::kinds::{Kind, Kinds};
use crate::pages::Page;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

const ROOT: &str = "/openapi/v3";
const JSON: &str = "application/json";

/// The index and all documents.
#[derive(Debug)]
pub struct OpenApi {
    kinds: Kinds,
    pages: OnceLock<Pages>,
}

#[derive(Debug)]
struct Pages {
    index: Page,
    /// By what follows [`ROOT`], such as `api/v1`.
    documents: BTreeMap<String, Page>,
}

impl OpenApi {
    /// Makes nothing yet.
    #[must_use]
    pub fn new(kinds: Kinds) -> Self {
        Self {
            kinds,
            pages: OnceLock::new(),
        }
    }

    /// The page at a path. With the hash that the index gives, it never changes.
    #[must_use]
    pub fn page(&self, path: &str, hash: Option<&str>) -> Option<Page> {
        let rest = path.strip_prefix(ROOT)?;
        let pages = self.pages.get_or_init(|| pages(&self.kinds));
        let name = rest.trim_matches('/');
        if name.is_empty() {
            return Some(pages.index.clone());
        }
        let mut page = pages.documents.get(name)?.clone();
        page.immutable = hash == Some(page.hash());
        Some(page)
    }
}

fn pages(kinds: &Kinds) -> Pages {
    let mut versions: BTreeMap<String, Vec<&Kind>> = BTreeMap::new();
    for kind in kinds.iter() {
        versions.entry(name(kind)).or_default().push(kind);
    }
    let document = |(name, kinds): (String, Vec<&Kind>)| {
        let page = Page::json(JSON, &document::document(&kinds));
        (name, page)
    };
    let documents: BTreeMap<String, Page> = versions.into_iter().map(document).collect();
    let address = |(name, page): (&String, &Page)| {
        let url = format!("{ROOT}/{name}?hash={}", page.hash());
        (name.clone(), json!({"serverRelativeURL": url}))
    };
    let paths: Map<String, Value> = documents.iter().map(address).collect();
    Pages {
        index: Page::json(JSON, &json!({"paths": paths})),
        documents,
    }
}

/// `api/v1`, or `apis/group/version`.
fn name(kind: &Kind) -> String {
    match kind.group.as_str() {
        "" => format!("api/{}", kind.version),
        group => format!("apis/{group}/{}", kind.version),
    }
}
