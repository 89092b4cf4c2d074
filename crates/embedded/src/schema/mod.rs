//! The structural schemas of custom kinds.

use crate::status::Cause;
use serde_json::Value;

/// A structural OpenAPI v3 schema.
#[derive(Clone, Debug)]
pub struct Schema {}

impl Schema {
    /// Reads the `openAPIV3Schema` of a definition; the error says what is not understood, and where.
    pub fn parse(schema: &Value) -> Result<Self, String> {
        let _ = schema;
        Ok(Self {})
    }

    /// Drops what the schema does not know, and says which fields that were: `spec.foo`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// Fills defaults in. After [`Schema::prune`].
    pub fn default(&self, object: &mut Value) {
        let _ = object;
    }

    /// Every rule that a new object breaks.
    pub fn validate(&self, object: &Value) -> Vec<Cause> {
        let _ = object;
        Vec::new()
    }

    /// Every rule that a changed object breaks. What was already wrong and is unchanged is let
    /// through.
    pub fn validate_update(&self, old: &Value, new: &Value) -> Vec<Cause> {
        let _ = old;
        self.validate(new)
    }
}
