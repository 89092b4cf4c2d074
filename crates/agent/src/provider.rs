//! By which name metrics count attachments: their provider's, `delegate` for those that plugins
//! make, `mixed` where a call has several.

use crate::journal::Record;
use plexus_core::plan::LinkKind;
use plexus_core::resolve::Resolved;

/// Of a call's attachments.
pub(crate) fn of_call<'a>(resolved: impl IntoIterator<Item = &'a Resolved>) -> &'static str {
    one_of(resolved.into_iter().map(|one| match one {
        Resolved::Native(wanted) => wanted.native.provider.name(),
        Resolved::Delegate(_) => "delegate",
    }))
}

/// Of a record's, judged by its links.
pub(crate) fn of_record(record: &Record) -> &'static str {
    let links = record.body.plan.links.iter().map(|link| match &link.kind {
        LinkKind::Macvlan { .. } => "macvlan",
        LinkKind::Veth(end) if end.router.is_some() => "overlay",
        LinkKind::Veth(end) if end.bridge.is_some() => "bridge",
        LinkKind::Veth(_) => "routed",
    });
    one_of(links.chain(record.body.delegates.iter().map(|_| "delegate")))
}

fn one_of(mut names: impl Iterator<Item = &'static str>) -> &'static str {
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
