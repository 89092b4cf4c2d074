//! One problem as a list of problems.

use crate::{Problem, Problems};

/// The only thing that is wrong.
pub(crate) fn fault(path: impl Into<String>, text: impl Into<String>) -> Problems {
    Problems(vec![Problem {
        path: path.into(),
        text: text.into(),
        unknown_key: false,
    }])
}
