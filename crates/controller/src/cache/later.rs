//! Objects of later kinds that wait or may have to, and the device classes that lead to our driver. Claims
//! and classes come in any order: a claim is remembered whatever its class leads to, until it is changed or
//! gone. Whoever tells them that they wait knows what was said and when.

use super::{Identity, Name};
use kube::runtime::watcher::Event;
use plexus_api::later::{Classes, LaterKind, Served};
use std::collections::BTreeMap;

/// An object of a later kind, as little of it as it takes to tell it that it waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) kind: &'static LaterKind,
    pub(crate) name: Name,
    pub(crate) id: Identity,
    /// Whether it waits at all.
    pub(crate) served: Served,
}

impl Waiting {
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.kind.group, self.kind.version)
    }

    fn key(&self) -> LaterKey {
        (self.kind.kind, self.name.clone())
    }

    /// Whether it waits, or may as soon as another class leads to our driver.
    fn may_wait(&self) -> bool {
        let never = matches!(&self.served, Served::ByClasses(classes) if classes.is_empty());
        !never && !self.id.deleting
    }
}

/// Kind and name.
pub(crate) type LaterKey = (&'static str, Name);

/// Who is to be told, now or when a class leads to our driver.
#[derive(Default)]
pub(crate) struct Later {
    objects: BTreeMap<LaterKey, Waiting>,
    classes: Classes,
}

impl Later {
    /// Takes what the watch of a kind says; gives those that must be told because of it.
    pub(crate) fn feed(
        &mut self,
        kind: &'static LaterKind,
        event: Event<Waiting>,
    ) -> Vec<LaterKey> {
        match event {
            // What is still there follows.
            Event::Init => {
                self.objects.retain(|(of, _), _| *of != kind.kind);
                if is_class(kind) {
                    self.classes = Classes::default();
                }
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => self.put(object),
            Event::Delete(object) => {
                self.objects.remove(&object.key());
                if is_class(kind) {
                    self.classes.set(&object.name.name, false);
                }
                Vec::new()
            }
            Event::InitDone => Vec::new(),
        }
    }

    /// The object of that key, if it waits.
    pub(crate) fn waiting(&self, key: &LaterKey) -> Option<&Waiting> {
        let object = self.objects.get(key)?;
        object.served.is_by_us(&self.classes).then_some(object)
    }

    fn put(&mut self, object: Waiting) -> Vec<LaterKey> {
        let key = object.key();
        let ours = object.served == Served::ByUs;
        let leads = is_class(object.kind) && self.classes.set(&object.name.name, ours);
        let class = leads.then(|| object.name.name.clone());
        match object.may_wait() {
            true => self.objects.insert(key.clone(), object),
            false => self.objects.remove(&key),
        };
        let mut to_tell = match class {
            Some(class) => self.claims_of(&class),
            None => Vec::new(),
        };
        if self.waiting(&key).is_some() {
            to_tell.push(key);
        }
        to_tell
    }

    fn claims_of(&self, class: &str) -> Vec<LaterKey> {
        let names = |object: &Waiting| matches!(&object.served, Served::ByClasses(named) if named.contains(class));
        let claims = self.objects.iter().filter(|(_, object)| names(object));
        claims.map(|(key, _)| key.clone()).collect()
    }
}

fn is_class(kind: &LaterKind) -> bool {
    kind.kind == "DeviceClass"
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_api::later::{DEVICE_CLASS, KINDS};

    fn kind(name: &str) -> &'static LaterKind {
        KINDS.iter().find(|kind| kind.kind == name).unwrap()
    }

    fn object(kind: &'static LaterKind, name: &str, served: Served) -> Waiting {
        let namespace = if kind.namespaced { "team-a" } else { "" };
        Waiting {
            kind,
            name: Name::new(namespace, name),
            id: Identity {
                uid: format!("uid-{name}"),
                ..Identity::default()
            },
            served,
        }
    }

    fn claim(name: &str, classes: &[&str]) -> Waiting {
        let classes = classes.iter().map(|class| (*class).to_owned()).collect();
        object(kind("ResourceClaim"), name, Served::ByClasses(classes))
    }

    fn class(name: &str, ours: bool) -> Waiting {
        let served = match ours {
            true => Served::ByUs,
            false => Served::ByClasses([].into()),
        };
        object(kind("DeviceClass"), name, served)
    }

    /// The names of those that must be told.
    fn feed_keys(
        later: &mut Later,
        event: impl Fn(Waiting) -> Event<Waiting>,
        object: Waiting,
    ) -> Vec<String> {
        let keys = later.feed(object.kind, event(object));
        let each = keys.into_iter().map(|key| {
            assert!(later.waiting(&key).is_some(), "{key:?}");
            key.1.name
        });
        each.collect()
    }

    #[test]
    fn a_claim_before_its_class_is_told_when_that_comes() {
        let mut later = Later::default();
        for (name, classes) in [("nic", ["gpu", "fast"]), ("other", ["gpu", "fast-2"])] {
            assert!(feed_keys(&mut later, Event::Apply, claim(name, &classes)).is_empty());
        }
        assert!(feed_keys(&mut later, Event::Apply, class("gpu", false)).is_empty());
        assert_eq!(
            feed_keys(&mut later, Event::Apply, class("fast", true)),
            ["nic", "fast"]
        );
        // A change of the class tells the claim nothing; one that comes back does.
        assert_eq!(
            feed_keys(&mut later, Event::Apply, class("fast", true)),
            ["fast"]
        );
        assert!(feed_keys(&mut later, Event::Delete, class("fast", true)).is_empty());
        assert_eq!(
            feed_keys(&mut later, Event::Apply, class("fast", true)),
            ["nic", "fast"]
        );
        // A class that is changed to lead to us is one that comes.
        assert_eq!(
            feed_keys(&mut later, Event::Apply, class("gpu", true)),
            ["nic", "other", "gpu"]
        );
    }

    #[test]
    fn a_claim_after_its_class_is_told_at_once_while_that_leads_to_us() {
        let mut later = Later::default();
        assert_eq!(
            feed_keys(&mut later, Event::Apply, claim("own", &[DEVICE_CLASS])),
            ["own"]
        );
        assert_eq!(
            feed_keys(&mut later, Event::Apply, class("fast", true)),
            ["fast"]
        );
        assert_eq!(
            feed_keys(&mut later, Event::Apply, claim("a", &["fast"])),
            ["a"]
        );
        // Another generation is told anew.
        let mut changed = claim("a", &["fast"]);
        changed.id.generation = Some(2);
        assert_eq!(feed_keys(&mut later, Event::Apply, changed), ["a"]);
        assert!(feed_keys(&mut later, Event::Apply, class("fast", false)).is_empty());
        assert!(feed_keys(&mut later, Event::Apply, claim("b", &["fast"])).is_empty());
        assert_eq!(
            feed_keys(&mut later, Event::Apply, class("fast", true)),
            ["a", "b", "fast"]
        );
        assert!(feed_keys(&mut later, Event::Delete, class("fast", true)).is_empty());
        assert!(feed_keys(&mut later, Event::Apply, claim("c", &["fast"])).is_empty());
    }

    #[test]
    fn a_claim_waits_only_as_long_as_its_class_leads_to_us() {
        let mut later = Later::default();
        later.feed(kind("DeviceClass"), Event::Apply(class("fast", true)));
        let keys = later.feed(kind("ResourceClaim"), Event::Apply(claim("a", &["fast"])));
        assert!(later.waiting(&keys[0]).is_some());
        later.feed(kind("DeviceClass"), Event::Apply(class("fast", false)));
        assert_eq!(later.waiting(&keys[0]), None);
        let mut newer = claim("a", &["fast"]);
        newer.id.generation = Some(2);
        later.feed(kind("ResourceClaim"), Event::Apply(newer));
        assert_eq!(
            feed_keys(&mut later, Event::Apply, class("fast", true)),
            ["a", "fast"]
        );
    }

    #[test]
    fn claims_that_are_gone_going_or_changed_are_forgotten() {
        let mut later = Later::default();
        for name in ["deleted", "going", "changed"] {
            feed_keys(&mut later, Event::Apply, claim(name, &["fast"]));
        }
        feed_keys(&mut later, Event::Delete, claim("deleted", &["fast"]));
        let mut going = claim("going", &["fast"]);
        going.id.deleting = true;
        feed_keys(&mut later, Event::Apply, going);
        feed_keys(&mut later, Event::Apply, claim("changed", &["gpu"]));
        assert_eq!(
            feed_keys(&mut later, Event::Apply, class("fast", true)),
            ["fast"]
        );
        feed_keys(&mut later, Event::Apply, claim("changed", &[]));
        let classes = later.objects.keys().all(|(kind, _)| *kind == "DeviceClass");
        assert!(classes, "nothing can make it ours");
    }

    #[test]
    fn a_new_list_of_a_kind_replaces_what_was_known_of_it() {
        let mut later = Later::default();
        feed_keys(&mut later, Event::Apply, claim("gone", &["fast"]));
        feed_keys(&mut later, Event::Apply, claim("stays", &["fast"]));
        feed_keys(&mut later, Event::Apply, class("old", true));
        later.feed(kind("ResourceClaim"), Event::Init);
        feed_keys(&mut later, Event::InitApply, claim("stays", &["fast"]));
        later.feed(kind("ResourceClaim"), Event::InitDone);
        // The classes are listed anew: the claims are left alone, and those that are gone lead nowhere.
        later.feed(kind("DeviceClass"), Event::Init);
        assert_eq!(
            feed_keys(&mut later, Event::InitApply, class("fast", true)),
            ["stays", "fast"]
        );
        later.feed(kind("DeviceClass"), Event::InitDone);
        assert!(feed_keys(&mut later, Event::Apply, claim("late", &["old"])).is_empty());
        assert_eq!(
            feed_keys(&mut later, Event::Apply, claim("own", &[DEVICE_CLASS])),
            ["own"]
        );
    }
}
