//! What benchmarks have in common: samples, what else the machine did meanwhile, a plugin run against the clock, and
//! the report. Never decides what is measured or what an aim is.

mod load;
mod plugin;
mod report;
mod samples;

pub use load::{Load, Reading};
pub use plugin::timed;
pub use report::{Ratio, Report, Row};
pub use samples::Samples;
