//! The kitchen behind `make`: one file per verb. Runs cargo, Go and the checks of the house with
//! the right directories; holds no product code and is never linked into a product.
#![allow(clippy::print_stdout, reason = "talking to a terminal is its work")]

mod api;
mod bench;
mod build;
mod demo;
mod deny;
mod docs;
mod env;
mod failed;
mod go_tools;
mod kube;
mod kube_tools;
mod lab;
mod lab_cases;
mod lint;
mod lock;
mod manifests;
mod run;
mod rust_tools;
mod setup;
mod shim;
mod suite;
mod test;
mod tidy;
mod vm;
mod workspace;

use anyhow::{Result, bail};
use std::process::ExitCode;
use workspace::Workspace;

const USAGE: &str = "usage: cargo xtask <verb>
  setup      build the CNI tools that the tests use, where missing
  env        print the variables that tests read, as shell exports
  build      release binaries: plexus, and the static plexus-cni
  demo       build, then run the demo
  test       the tests that need no parts of a cluster, some at a time
  test-lab   what goes wrong on three virtual nodes: a quarter of an hour
  lint       rustfmt, clippy, cargo-deny, tidy
  docs       the pages of docs/ as a book in HTML, into the build directory (compiles mdBook once)
  deny       licences and sources of the dependencies
  manifests  deploy/install.yaml from deploy/crds and deploy/parts
  tidy       room dependencies, file sizes, words that must not land, broken links
  bench-cni  the CNI benchmark against the reference plugins
  bench-embedded  the embedded API against a kube-apiserver with etcd
  kube-tools build the components of a real cluster, where missing (a quarter of an hour)
  kube-up    a real cluster with Plexus; NODES=2, KUBE=\"options of kubelab up\"
  kube-down  remove it
  lab-cases  the end-to-end cases that need no kubelet, on a lab
  test-kube  the end-to-end tests, on one cluster and beside it on others
  bench-kube the benchmark on a cluster, against Multus
  soak       churn on a cluster for an hour
  vm [--without-modules] [--limit SECONDS] COMMAND…  run it on Debian's kernel, in a virtual machine";

fn main() -> ExitCode {
    match run_verb() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_verb() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, rest @ ..] = arguments.as_slice()
        && verb == "vm"
    {
        return vm::run(&Workspace::find()?, rest);
    }
    if let [verb, part] = arguments.as_slice()
        && verb == lab::PART
    {
        return lab::part(&Workspace::find()?, part);
    }
    let [verb] = arguments.as_slice() else {
        bail!("one verb expected, {} given\n{USAGE}", arguments.len());
    };
    let workspace = Workspace::find()?;
    match verb.as_str() {
        "setup" => setup::run(&workspace),
        "env" => env::run(&workspace),
        "build" => build::run(&workspace),
        "demo" => demo::run(&workspace),
        "test" => test::run(&workspace),
        "test-lab" => lab::test(&workspace),
        "lint" => lint::run(&workspace),
        "docs" => docs::run(&workspace),
        "deny" => deny::run(&workspace),
        "tidy" => tidy::run(&workspace),
        "manifests" => manifests::run(&workspace),
        "bench-cni" => bench::run(&workspace),
        "bench-embedded" => bench::embedded(&workspace),
        "kube-tools" => kube::tools(&workspace),
        "kube-up" => kube::up(&workspace),
        "kube-down" => kube::down(&workspace),
        "lab-cases" => lab_cases::run(&workspace),
        "test-kube" => kube::test(&workspace),
        kube::BARE_PART => kube::bare_part(&workspace),
        "bench-kube" => kube::bench(&workspace),
        "soak" => kube::soak(&workspace),
        unknown => bail!("no verb {unknown:?}\n{USAGE}"),
    }
}
