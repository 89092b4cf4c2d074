//! How rows write core's values: the journal's own structures, one file per subject. Owns the words and fields on disk.
//! A rename or a new variant in core does not compile until it is said here how it is written; `golden/` has the text
//! of every kind. What this version does not know, a word or a field, makes the row unreadable.
//!
//! Each structure describes a type of core field by field (`serde(remote)`), so nothing is copied between the two.

mod addresses;
mod link;
mod node;
mod preparation;
mod request;

pub(super) use addresses::{AssignedRow, LeaseRow};
pub(super) use link::LinkRow;
pub(super) use node::NodePlanRow;
pub(super) use preparation::{AwaitedLinkRow, OutsideCallRow};
pub(super) use request::{HostPortRow, ReferenceRow};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::marker::PhantomData;

/// How a value of core is written.
pub(super) trait Row {
    type Of;
    fn write<S: Serializer>(value: &Self::Of, to: S) -> Result<S::Ok, S::Error>;
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self::Of, D::Error>;
}

/// Rows that stand by themselves, in lists or where there may be none.
macro_rules! rows {
    ($($row:ident: $of:ty),* $(,)?) => {$(
        impl super::Row for $row {
            type Of = $of;
            fn write<S: serde::Serializer>(value: &$of, to: S) -> Result<S::Ok, S::Error> {
                $row::serialize(value, to)
            }
            fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<$of, D::Error> {
                $row::deserialize(from)
            }
        }
    )*};
}
use rows;

pub(super) fn text<R: Row>(value: &R::Of) -> String {
    serde_json::to_string(&Written::<R>(value)).unwrap_or_default()
}

pub(super) fn parse<R: Row>(text: &str) -> serde_json::Result<R::Of> {
    serde_json::from_str(text).map(|Parsed::<R>(value)| value)
}

/// `serde(with)` of a list.
pub(super) struct List<R>(PhantomData<R>);

impl<R: Row> List<R> {
    pub(super) fn serialize<S: Serializer>(all: &[R::Of], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(all.iter().map(Written::<R>))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<R::Of>, D::Error> {
        let all = Vec::<Parsed<R>>::deserialize(from)?;
        Ok(all.into_iter().map(|one| one.0).collect())
    }
}

/// `serde(with)` of what may be absent.
pub(super) struct Maybe<R>(PhantomData<R>);

impl<R: Row> Maybe<R> {
    pub(super) fn serialize<S: Serializer>(one: &Option<R::Of>, to: S) -> Result<S::Ok, S::Error> {
        one.as_ref().map(Written::<R>).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<R::Of>, D::Error> {
        Ok(Option::<Parsed<R>>::deserialize(from)?.map(|one| one.0))
    }
}

struct Written<'a, R: Row>(&'a R::Of);

impl<R: Row> Serialize for Written<'_, R> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        R::write(self.0, to)
    }
}

struct Parsed<R: Row>(R::Of);

impl<'de, R: Row> Deserialize<'de> for Parsed<R> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        R::read(from).map(Self)
    }
}

#[cfg(test)]
mod tests;
