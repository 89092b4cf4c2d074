//! The flags that name files.

use anyhow::bail;
use clap::Args;
use plexus_cli::input::{InputError, Source, sources};
use serde_json::Value;
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

/// The objects that were read; a text that is none stops everything.
pub(crate) fn objects(sources: Vec<Source>) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for source in sources {
        if let Some(fault) = source.faults.first() {
            bail!("{}:{}: {}", source.name, fault.line, fault.text);
        }
        objects.extend(source.objects.into_iter().map(|written| written.object));
    }
    if objects.is_empty() {
        bail!("there is no object in what was given with -f");
    }
    Ok(objects)
}
