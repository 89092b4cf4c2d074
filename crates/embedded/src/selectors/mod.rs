//! Which objects a list or watch has: by labels and by fields. Owns the two small languages and the
//! sentences of their errors; takes texts, gives something that says yes or no. Never reads a store.

mod fields;
mod labels;

pub use fields::{Fields, value_of};
pub use labels::Labels;
