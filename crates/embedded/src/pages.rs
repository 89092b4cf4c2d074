//! Documents that are made once and sent as they are: bytes, their type, and the tag by which a
//! client asks whether they changed.

use serde_json::Value;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// A document ready to be sent.
#[derive(Clone, Debug)]
pub struct Page {
    /// With all parameters that clients look for.
    pub content_type: &'static str,
    /// `ETag`, in its quotes.
    pub etag: String,
    /// Never changes at its address: clients may keep it for a year.
    pub immutable: bool,
    /// The bytes.
    pub body: Arc<[u8]>,
}

impl Page {
    pub(crate) fn json(content_type: &'static str, document: &Value) -> Self {
        let body = document.to_string().into_bytes();
        Self {
            content_type,
            etag: format!("\"{}\"", hash(&body)),
            immutable: false,
            body: body.into(),
        }
    }

    /// Whether `If-None-Match` names this very document: the answer is then 304.
    #[must_use]
    pub fn is(&self, if_none_match: Option<&str>) -> bool {
        let tags = if_none_match.into_iter().flat_map(|tags| tags.split(','));
        let tags = tags.map(|tag| tag.trim().trim_start_matches("W/"));
        let mut tags = tags.filter(|tag| !tag.is_empty());
        tags.any(|tag| tag == "*" || tag == self.etag)
    }

    /// The tag without its quotes.
    pub(crate) fn hash(&self) -> &str {
        self.etag.trim_matches('"')
    }
}

/// Differs for documents that differ. Nobody is kept out by it.
fn hash(bytes: &[u8]) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        hasher.write(bytes);
        hasher.finish()
    };
    format!("{:016X}{:016X}", half(0), half(1))
}

#[cfg(test)]
mod tests {
    use super::Page;
    use serde_json::json;

    #[test]
    fn a_page_is_known_by_its_tag() {
        let page = Page::json("application/json", &json!({"a": 1}));
        let other = Page::json("application/json", &json!({"a": 2}));
        assert_ne!(page.etag, other.etag);
        assert!(page.is(Some(&page.etag)));
        assert!(page.is(Some(&format!("{}, W/{}", other.etag, page.etag))));
        assert!(page.is(Some("*")));
        assert!(!page.is(Some(&other.etag)));
        assert!(!page.is(Some("")));
        assert!(!page.is(None));
    }
}
