//! What objects mean, said by whoever knows: handed in, asked at every write.

use crate::kinds::Kind;
use crate::status::Cause;
use serde_json::Value;

/// The object that a patch changes, and the patch. Both are none if the client sent a whole object, or one to
/// apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct PatchBase<'a> {
    /// The object as it is stored.
    pub stored: Option<&'a Value>,
    /// A merge or a strategic patch, as it was sent: fields that it takes away are null.
    pub patch: Option<&'a Value>,
}

/// Checks what a schema cannot say. Its methods are called at every write: they must be quick, and
/// decide by their arguments alone.
pub trait Validator: Send + Sync {
    /// Translates what a client wrote, before anything that the kind does not have is dropped. Called
    /// with every object that is sent, with what a patch makes of one, and with what is applied, which
    /// may be a part. Gives what the client's user should be warned of.
    ///
    /// # Errors
    /// What cannot be translated.
    fn received(
        &self,
        kind: &Kind,
        before: PatchBase<'_>,
        object: &mut Value,
    ) -> Result<Vec<String>, Vec<Cause>> {
        let _ = (kind, before, object);
        Ok(Vec::new())
    }

    /// All that is wrong with an object; `old` is what it replaces.
    fn problems(&self, kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<Cause>;
}

/// Finds every object valid.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anything;

impl Validator for Anything {
    fn problems(&self, _: &Kind, _: Option<&Value>, _: &Value) -> Vec<Cause> {
        Vec::new()
    }
}
