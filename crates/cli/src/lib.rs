//! The user's verbs: what objects, files and a node say, told to people. Owns tables, descriptions,
//! diagnoses, the checks of `doctor`, and the choice of the API server that is asked.
//!
//! Almost everything is a function from objects to answers or text. What does I/O is thin and has a
//! place of its own: `client` talks to the API server, `doctor` looks at this machine, `input` reads
//! files. Decides nothing about networks: `core` does, and what is shown is what it says.

#![forbid(unsafe_code)]

/// An enum whose variants are also listed, so that none is forgotten where all are gone over.
macro_rules! listed {
    ($(#[$outer:meta])* pub enum $name:ident { $($(#[$inner:meta])* $variant:ident,)* }) => {
        $(#[$outer])*
        pub enum $name {
            $($(#[$inner])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }
    };
}
pub(crate) use listed;

pub mod agent;
pub mod client;
pub mod create;
pub mod describe;
pub mod diagnose;
pub mod doctor;
pub mod get;
pub mod holder;
pub mod input;
pub mod ipam;
pub mod kinds;
pub mod output;
pub mod plan;
pub mod snapshot;
pub mod text;
pub mod validate;
