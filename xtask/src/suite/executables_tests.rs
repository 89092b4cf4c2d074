use super::*;
use serde_json::json;
use std::fs;

fn message(kind: &str, test: bool) -> Value {
    json!({
        "reason": "compiler-artifact",
        "package_id": "path+file:///tree/crates/agent#plexus-agent@0.1.0",
        "manifest_path": "/tree/crates/agent/Cargo.toml",
        "target": {"kind": [kind], "name": "plexus_agent", "src_path": "/tree/crates/agent/src/lib.rs"},
        "profile": {"test": test},
        "executable": "/target/debug/deps/plexus_agent-1",
    })
}

#[test]
fn tests_are_executables_and_programs_are_not() {
    let found = executable(&message("lib", true)).unwrap();
    assert_eq!(found.name(), "plexus-agent (lib)");
    assert_eq!(found.dir, Path::new("/tree/crates/agent"));
    assert_eq!(executable(&message("bin", false)), None);
    assert_eq!(
        executable(&json!({"reason": "build-finished", "success": true})),
        None
    );
}

#[test]
fn a_package_is_called_as_its_directory_unless_it_says_more() {
    let package = |id| package(id).unwrap();
    assert_eq!(
        package("path+file:///tree/crates/cni#plexus-cni@0.1.0"),
        "plexus-cni"
    );
    assert_eq!(package("path+file:///tree/xtask#0.1.0"), "xtask");
}

#[test]
fn a_target_that_needs_more_says_so_in_its_manifest_or_file() {
    let lab = json!({"required-features": ["scenarios"]});
    let server = json!({"required-features": ["e2e"]});
    let gated = "//! Words.\n#![cfg(feature = \"e2e\")]\n";
    assert_eq!(tier(&lab, ""), Tier::Lab);
    assert_eq!(tier(&server, ""), Tier::Cluster);
    assert_eq!(tier(&json!({}), gated), Tier::Cluster);
    assert_eq!(
        tier(&json!({}), "#![cfg(feature = \"objects\")]"),
        Tier::Test
    );
    assert_eq!(
        tier(&json!({}), "//! A test of `#![cfg(feature = \"e2e\")]`."),
        Tier::Test
    );
}

/// What a cluster or minutes are needed for does not get into `make test` because somebody wrote its gate otherwise.
#[test]
fn what_needs_a_cluster_or_minutes_is_known_in_the_tree() {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let root = Path::new(&here).parent().unwrap().to_path_buf();
    let mut gated = Vec::new();
    for room in fs::read_dir(root.join("crates")).unwrap() {
        let room = room.unwrap().path();
        let manifest = fs::read_to_string(room.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        for entry in fs::read_dir(room.join("tests")).into_iter().flatten() {
            let path = entry.unwrap().path();
            let main = if path.is_dir() {
                path.join("main.rs")
            } else {
                path.clone()
            };
            let Ok(source) = fs::read_to_string(main) else {
                continue;
            };
            let name = path.file_stem().unwrap().to_str().unwrap();
            if tier(&target_of(&manifest, name), &source) != Tier::Test {
                gated.push(format!(
                    "{} {name}",
                    room.file_name().unwrap().to_str().unwrap()
                ));
            }
        }
    }
    gated.sort();
    let kubekit = "apply_differential bare_api cli cluster_cni conformance disturbances multus networks observability \
                   one_add privilege privileges query rights seed_000 smoke status up_containerd up_kubectl variants";
    let kubekit = kubekit.split(' ').map(|name| format!("kubekit {name}"));
    let mut expected: Vec<String> = ["controller api_server", "embedded kubectl"]
        .map(str::to_owned)
        .into();
    expected.extend(kubekit);
    expected
        .extend(["plexus debian_kernel", "plexus lab_cli", "plexus scenarios"].map(str::to_owned));
    assert_eq!(gated, expected);
}

fn target_of(manifest: &toml::Table, name: &str) -> Value {
    let tests = manifest.get("test").and_then(toml::Value::as_array);
    let named = tests
        .into_iter()
        .flatten()
        .find(|test| test["name"].as_str() == Some(name));
    let required = named.and_then(|test| test.get("required-features")?.as_array());
    let required: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_str)
        .collect();
    json!({"required-features": required})
}
