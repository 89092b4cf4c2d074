//! `plexus validate`.

use super::files::FileFlags;
use super::{Structured, code, print, structured};
use clap::Args;
use plexus_cli::text::Screen;
use plexus_cli::validate::validate;
use std::process::ExitCode;

/// The flags of `plexus validate`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    files: FileFlags,
    /// Where objects go that name no namespace.
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// In another form.
    #[arg(short, long, value_enum)]
    output: Option<Structured>,
}

pub(super) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    let report = validate(&flags.files.sources()?, &flags.namespace);
    let text = || report.render(Screen::stdout());
    print(&structured(flags.output, || report.to_json(), text))?;
    Ok(code(report.is_valid()))
}
