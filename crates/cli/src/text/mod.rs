//! Text for people: colours and widths on a terminal, neither in a pipe.

mod age;
mod bar;
mod count;
mod screen;
mod table;

pub use age::{age, seconds_since};
pub use bar::bar;
pub use count::count;
pub use screen::{Paint, Screen};
pub use table::{Cell, Table};
