//! The structural OpenAPI v3 schemas of custom kinds. Takes the `openAPIV3Schema` of a definition and
//! whole objects; gives objects without unknown fields, with defaults, and every problem with its field
//! path, in the words of the real API server. Pure; never knows what a field means.
//!
//! ```text
//!   request ──► prune (unknown fields) ──► default ──► validate (new) or validate_update (old, new)
//! ```
//!
//! `apiVersion`, `kind` and `metadata` of the object itself are left alone, as everywhere in Kubernetes: the
//! server has rules of its own for them.
//!
//! Left to the validator that is handed to the server:
//! - rules in `x-kubernetes-validations` (CEL), except the one that is most common and needs no
//!   evaluation: `self == oldSelf`. See [`Schema::blocks_rules`] for when they are not even asked for;
//! - the metadata of embedded resources (their `apiVersion` and `kind` are checked here).
//!
//! Formats of which nobody has a list by heart (`isbn`, `creditcard`, `ssn`, `bsonobjectid`, colours) are
//! let through.

mod default;
mod formats;
mod immutable;
mod node;
mod numbers;
mod parse;
mod prune;
mod unique;
mod validate;

#[cfg(test)]
mod validate_tests;
#[cfg(test)]
mod value_tests;

pub(crate) use node::{ListType, Node, Others, Type};

use crate::patch::Shape;
use crate::status::Cause;
use serde_json::Value;

/// A structural schema, ready for use.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Node,
    shape: Shape,
}

impl Schema {
    /// Reads the `openAPIV3Schema` of a definition; the error says what is not understood, and where.
    pub fn parse(schema: &Value) -> Result<Self, String> {
        let root = Node::parse(schema, "openAPIV3Schema")?;
        let shape = Shape::of_schema(&root);
        Ok(Self { root, shape })
    }

    /// Drops what the schema does not know, and says which fields that were: `spec.foo`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// Fills defaults in, and drops nulls where there can be none. After [`Schema::prune`].
    pub fn default(&self, object: &mut Value) {
        default::drop_nulls(&self.root, object);
        default::fill(&self.root, object);
    }

    /// Every rule that a new object breaks.
    pub fn validate(&self, object: &Value) -> Vec<Cause> {
        let mut causes = validate::problems(&self.root, None, object);
        causes.extend(unique::embedded(&self.root, object));
        causes.extend(unique::problems(&self.root, object));
        causes
    }

    /// Every rule that a changed object breaks. What was already wrong and is unchanged is let
    /// through.
    pub fn validate_update(&self, old: &Value, new: &Value) -> Vec<Cause> {
        let mut causes = validate::problems(&self.root, Some(old), new);
        causes.extend(unique::embedded(&self.root, new));
        if unique::problems(&self.root, old).is_empty() {
            causes.extend(unique::problems(&self.root, new));
        }
        if !Self::blocks_rules(&causes) {
            causes.extend(immutable::problems(&self.root, old, new));
        }
        causes
    }

    /// Whether these problems are such that rules between fields are not to be looked at: a rule may
    /// assume that types, lengths and required fields are right.
    pub fn blocks_rules(causes: &[Cause]) -> bool {
        causes.iter().any(|cause| {
            matches!(
                cause.reason,
                "FieldValueNotSupported"
                    | "FieldValueRequired"
                    | "FieldValueTooLong"
                    | "FieldValueTooMany"
                    | "FieldValueTypeInvalid"
            )
        })
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }
}
