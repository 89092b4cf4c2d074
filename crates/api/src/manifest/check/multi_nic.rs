//! What a MultiNicNetwork means: all that is wrong with its values, its `ipam` text included.

use crate::manifest::Level;
use crate::manifest::finding::Findings;
use crate::objects::{MULTI_NIC_GROUP, MULTI_NIC_SUCCESSOR, MultiNicNetworkSpec};
use serde::Deserialize;
use serde_json::Value;

/// One whose fields have the wrong types is looked at by its schema alone.
pub(super) fn check(object: &Value, findings: &mut Findings<'_>) {
    let group = object.get("apiVersion").and_then(Value::as_str);
    if group.is_some_and(|group| group.starts_with(MULTI_NIC_SUCCESSOR)) {
        let text = format!(
            "is read as {MULTI_NIC_GROUP}/v1: move over by writing that, once multi-nic-cni is removed"
        );
        findings.add(Level::Note, "apiVersion", text);
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if let Ok(spec) = MultiNicNetworkSpec::deserialize(spec)
        && let Err(problems) = spec.meaning()
    {
        findings.problems("", problems);
    }
}

#[cfg(test)]
mod tests {
    use crate::later::Classes;
    use crate::manifest::{Level, check, read};

    /// Problems and notes as `path: text`.
    fn found(api_version: &str, spec: &str) -> Vec<String> {
        let text = format!(
            "apiVersion: {api_version}\nkind: MultiNicNetwork\nmetadata: {{name: a}}\nspec: {spec}\n"
        );
        let manifest = read(&text);
        let findings = check(&manifest.objects[0], &Classes::default()).into_iter();
        let said = findings.filter(|one| one.level != Level::Waiting);
        said.map(|one| format!("{}: {}", one.path, one.text))
            .collect()
    }

    const SOUND: &str =
        r#"{subnet: 192.168.0.0/16, ipam: '{"type": "multi-nic-ipam", "hostBlock": 6}'}"#;

    #[test]
    fn a_sound_one_in_both_groups() {
        assert_eq!(found("net.cogadvisor.io/v1", SOUND), [""; 0]);
        let successor = found("multinic.fms.io/v1", SOUND);
        assert_eq!(successor.len(), 1, "{successor:?}");
        assert!(
            successor[0].contains("net.cogadvisor.io/v1"),
            "{successor:?}"
        );
    }

    #[test]
    fn fields_and_values_by_their_paths() {
        for (spec, wanted) in [
            ("{ipam: '{}', subnets: x}", "spec.subnets: is not a field"),
            (
                "{ipam: '{}', multiNICIPAM: 3}",
                "spec.multiNICIPAM: has the wrong type",
            ),
            ("{subnet: 10.0.0.0/16}", "spec.ipam: is missing"),
            (
                r#"{subnet: 10.0.0.0/16, ipam: '{"type": "multi-nic-ipam", "hostBlock": 0}'}"#,
                "spec.ipam.hostBlock: is 0",
            ),
            (
                r#"{subnet: 10.0.0.0/30, ipam: '{"type": "multi-nic-ipam", "hostBlock": 1}'}"#,
                "spec.subnet: 10.0.0.0/30 has 2 bits",
            ),
            (
                r#"{ipam: '{"type": "whereabouts"}', plugin: {type: sriov}}"#,
                "spec.plugin.type: is sriov",
            ),
        ] {
            let found = found("net.cogadvisor.io/v1", spec);
            assert!(
                found.iter().any(|one| one.starts_with(wanted)),
                "{wanted}: {found:?}"
            );
        }
    }
}
