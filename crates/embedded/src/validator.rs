//! What objects mean, said by whoever knows: handed in, asked at every write.

use crate::kinds::Kind;
use crate::status::Cause;
use serde_json::Value;

/// Checks what a schema cannot say. Both methods are called at every write, in its turn, one at a
/// time: they must be quick, and decide by their arguments alone.
pub trait Validator: Send + Sync {
    /// Fills in what follows from the rest. The schema's defaults are there already.
    fn defaulted(&self, kind: &Kind, object: &mut Value) {
        let _ = (kind, object);
    }

    /// All that is wrong with an object; `old` is what it replaces.
    fn problems(&self, kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<Cause>;
}

/// Has nothing to say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anything;

impl Validator for Anything {
    fn problems(&self, _: &Kind, _: Option<&Value>, _: &Value) -> Vec<Cause> {
        Vec::new()
    }
}
