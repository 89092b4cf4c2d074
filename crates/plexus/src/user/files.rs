//! The flags that name files.

use clap::Args;
use plexus_cli::input::{InputError, Source, sources};
use std::path::PathBuf;

/// Which files.
#[derive(Debug, Clone, Args)]
pub(crate) struct FileFlags {
    /// A file, a directory (its .yaml, .yml and .json), or - for standard input; may be repeated.
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    filename: Vec<PathBuf>,
    /// Look into the directories of a directory too.
    #[arg(short = 'R', long)]
    recursive: bool,
}

impl FileFlags {
    /// Reads them.
    pub(crate) fn sources(&self) -> Result<Vec<Source>, InputError> {
        sources(&self.filename, self.recursive)
    }
}
