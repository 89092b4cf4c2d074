//! Links that are stacked on a link of the node: `macvlan` and its like. Owns how a plan names one, and what everybody
//! must know of a kind to make, print, compare and adopt its links. The kinds themselves are described by the
//! providers that make them, each in its own file; nobody else knows one by name.

use super::{ObservedLink, provider};
use plexus_types::IfName;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// A link on a link of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stacked {
    /// The node's link.
    pub parent: Parent,
    /// The kernel's word for its kind.
    pub kind: String,
    /// Its options by their names in `ip link`, as the kernel numbers them.
    pub options: BTreeMap<String, u32>,
}

/// A link of the node that others hang off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its name, for people.
    pub name: IfName,
    /// Its index when the plan was made, for the kernel.
    pub index: u32,
}

/// A kind of stacked links.
#[derive(Debug)]
pub struct StackedKind {
    /// The kernel's word for it.
    pub name: &'static str,
    /// Its options, in the order in which they are printed.
    pub options: &'static [LinkOption],
    /// The likely cause when the kernel refuses to make a link, where it is one of this kind's own: what is said of
    /// the parent after "cannot carry it".
    pub refusal: fn(&Stacked, Refusal) -> Option<String>,
    /// What a link takes of its parent.
    pub parent_use: fn(&Stacked) -> ParentUse,
    /// Whether the kernel, when it makes a link that its siblings do not go with, changes them instead of refusing it.
    pub changes_siblings: bool,
}

/// What a link takes of its parent, and with whom it shares that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentUse {
    /// What it takes: [`RECEIVED`], or something else that there is once.
    pub resource: String,
    /// It shares that with those who say the same here; none: with nobody.
    pub shared_as: Option<String>,
    /// Why others must go elsewhere.
    pub why: &'static str,
}

/// What a parent receives: the kernel hands it to links of one kind.
pub const RECEIVED: &str = "received packets";

/// An option of a kind, as the kernel knows it.
#[derive(Debug)]
pub struct LinkOption {
    /// Its name in `ip link`.
    pub name: &'static str,
    /// Its attribute in the kind's data.
    pub attribute: u16,
    /// How wide the number is.
    pub width: Width,
    /// The word for a number, where it has words.
    pub word: fn(u32) -> Option<&'static str>,
    /// Whether the kernel must have it as planned.
    pub is_compared: bool,
}

/// How wide a number of the kernel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
}

/// How the kernel refuses to make a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// EBUSY.
    Busy,
    /// EEXIST, though the pod has no interface of that name.
    Exists,
    /// EINVAL.
    Invalid,
    /// EOPNOTSUPP, though the kernel has that kind.
    Unsupported,
}

impl Stacked {
    /// Its kind; none if it is from the journal of an agent that knew more.
    pub fn kind(&self) -> Option<&'static StackedKind> {
        provider::stacked_kind(&self.kind)
    }

    /// A link that the kernel has, if it is of such a kind. Its parent is known by its index alone: `name` stands in.
    pub fn observed(link: &ObservedLink, name: &IfName) -> Option<Self> {
        let kind = provider::stacked_kind(&link.kind)?;
        let compared = kind.options.iter().filter(|option| option.is_compared);
        let options = compared
            .filter_map(|option| Some((option.name.to_owned(), link.option(option.attribute)?)));
        Some(Self {
            parent: Parent {
                name: name.clone(),
                index: link.parent.unwrap_or(0),
            },
            kind: link.kind.clone(),
            options: options.collect(),
        })
    }

    /// Whether the kernel, instead of refusing it, changes the links beside it that do not go with it.
    pub fn changes_siblings(&self) -> bool {
        self.kind().is_some_and(|kind| kind.changes_siblings)
    }

    /// Why it cannot be on its parent together with `other`, if it is the same parent.
    pub fn conflict(&self, other: &Self) -> Option<&'static str> {
        let mine = (self.kind()?.parent_use)(self);
        let others = (other.kind()?.parent_use)(other);
        let shared = mine.shared_as.is_some() && mine.shared_as == others.shared_as;
        let same = self.parent.index == other.parent.index && mine.resource == others.resource;
        (same && !shared).then_some(mine.why)
    }

    /// The options that it has, with their numbers.
    pub fn options(&self) -> impl Iterator<Item = (&'static LinkOption, u32)> {
        let all = self.kind().map_or(&[][..], |kind| kind.options);
        all.iter()
            .filter_map(|option| Some((option, *self.options.get(option.name)?)))
    }
}

/// As the end of an `ip link add`: `macvlan mode bridge`.
impl Display for Stacked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        self.options()
            .try_for_each(|(option, value)| write!(f, " {} {}", option.name, option.text(value)))
    }
}

impl LinkOption {
    /// A value as people write it.
    pub fn text(&self, value: u32) -> String {
        (self.word)(value).map_or_else(|| value.to_string(), str::to_owned)
    }
}
