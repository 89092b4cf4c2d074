//! The pages of `docs/` as a book in HTML, made by mdBook, which is compiled into the cache once per version. The book is in
//! the build directory at the place that its pages have in the tree, and beside it what they link to outside of it, so
//! that relative links lead where they do in the tree.

use crate::rust_tools::{self, Tool};
use crate::{run, tidy, workspace::Workspace};
use anyhow::{Context, Result};
use std::fs;
use std::process::Command;

const MDBOOK: Tool<'_> = Tool {
    name: "mdbook",
    version: "0.5.4",
    options: &["--no-default-features", "--features", "search"],
};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let program = rust_tools::installed(workspace, &MDBOOK)?;
    let tree = workspace.target.join("docs");
    let book = tree.join("docs/src");
    run::logged(
        workspace,
        Command::new(program)
            .args(["build", "docs", "--dest-dir"])
            .arg(&book),
    )?;
    for path in tidy::linked_outside_the_book(workspace)? {
        let from = workspace.root.join(&path);
        let content = fs::read(&from).with_context(|| format!("cannot read {path}"))?;
        // What mdBook makes of a link to a Markdown file ends in .html, also outside of the book.
        let (path, content) = match path.strip_suffix(".md") {
            Some(name) => {
                let text = String::from_utf8_lossy(&content);
                (format!("{name}.html"), as_html(name, &text).into_bytes())
            }
            None => (path, content),
        };
        let to = tree.join(path);
        let written = to.parent().map_or(Ok(()), fs::create_dir_all);
        written
            .and_then(|()| fs::write(&to, content))
            .with_context(|| format!("cannot write {}", to.display()))?;
    }
    println!("{}", book.join("index.html").display());
    Ok(())
}

/// A text as it is, for a browser.
fn as_html(title: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<pre>{text}</pre>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::as_html;

    #[test]
    fn a_text_is_shown_as_it_is() {
        let html = as_html("A", "a <b> & `c`\n");
        assert!(
            html.ends_with("<title>A</title>\n<pre>a &lt;b> &amp; `c`\n</pre>\n"),
            "{html}"
        );
    }
}
