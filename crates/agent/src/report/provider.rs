//! By which name metrics count attachments: their provider's, `delegate` for those that plugins
//! make, `mixed` where a request has several.

use crate::journal::{AttachmentRecord, Record};

/// Of a record's attachments.
pub(crate) fn of_record(record: &Record) -> &str {
    one_of(record.attachments.iter().map(AttachmentRecord::provider))
}

fn one_of<'a>(mut names: impl Iterator<Item = &'a str>) -> &'a str {
    let Some(first) = names.next() else {
        return "none";
    };
    if names.all(|name| name == first) {
        first
    } else {
        "mixed"
    }
}

#[cfg(test)]
mod tests {
    use super::one_of;

    #[test]
    fn one_name_for_all() {
        assert_eq!(one_of([].into_iter()), "none");
        assert_eq!(one_of(["routed", "routed"].into_iter()), "routed");
        assert_eq!(one_of(["routed", "delegate"].into_iter()), "mixed");
    }
}
