//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler, in the control plane's network
//! namespace: their command lines, and etcd's data as a thing that can be put aside and put back.

use crate::command::run;
use crate::layout::{API_PORT, CLUSTER_CIDRS, CONTROL_PLANE_V4, Layout, SERVICE_CIDRS};
use crate::part::Part;
use crate::spec::{PodCidrs, Spec};
use crate::tools::Tools;
use crate::underlay;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// The command line of a part of the control plane.
pub(crate) fn command(part: &Part, layout: &Layout, spec: &Spec, tools: &Tools) -> Vec<String> {
    let (program, flags) = match part {
        Part::Etcd => (tools.etcd.join("etcd"), etcd(layout)),
        Part::ControllerManager => (
            tools.kubernetes.join("kube-controller-manager"),
            controller_manager(layout, spec),
        ),
        Part::Scheduler => (tools.kubernetes.join("kube-scheduler"), scheduler(layout)),
        _ => (
            tools.kubernetes.join("kube-apiserver"),
            api_server(layout, spec),
        ),
    };
    let mut argv = underlay::inside(layout, "cp");
    argv.push(program.display().to_string());
    argv.extend(flags);
    argv
}

/// Copies etcd's data to `to`; etcd must not run.
pub(crate) fn save(layout: &Layout, to: &Path) -> Result<()> {
    copy(&layout.etcd(), to)
}

/// Puts data that was saved back in place; etcd must not run.
pub(crate) fn restore_snapshot(layout: &Layout, from: &Path) -> Result<()> {
    let data = layout.etcd();
    fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
    copy(from, &data)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let text = |path: &Path| path.display().to_string();
    run(&["cp", "-aT", &text(from), &text(to)]).map(drop)
}

fn etcd(layout: &Layout) -> Vec<String> {
    let data = layout.etcd();
    strings(&[
        &format!("--data-dir={}", data.display()),
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--log-level=warn",
        "--unsafe-no-fsync",
    ])
}

fn api_server(layout: &Layout, spec: &Spec) -> Vec<String> {
    let pki = layout.pki();
    let pki = pki.display();
    let mut flags = strings(&[
        "--etcd-servers=http://127.0.0.1:2379",
        "--bind-address=::",
        &format!("--advertise-address={CONTROL_PLANE_V4}"),
        &format!("--secure-port={API_PORT}"),
        &format!("--tls-cert-file={pki}/apiserver.crt"),
        &format!("--tls-private-key-file={pki}/apiserver.key"),
        &format!("--client-ca-file={pki}/ca.crt"),
        "--service-account-issuer=https://kubernetes.default.svc",
        &format!("--service-account-key-file={pki}/sa.pub"),
        &format!("--service-account-signing-key-file={pki}/sa.key"),
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        &format!("--service-cluster-ip-range={SERVICE_CIDRS}"),
        "--allow-privileged=true",
        "--kubelet-preferred-address-types=InternalIP",
        &format!("--kubelet-client-certificate={pki}/admin.crt"),
        &format!("--kubelet-client-key={pki}/admin.key"),
        &format!("--kubelet-certificate-authority={pki}/ca.crt"),
    ]);
    flags.extend(spec.api_flags.iter().cloned());
    flags
}

fn controller_manager(layout: &Layout, spec: &Spec) -> Vec<String> {
    let pki = layout.pki();
    let pki = pki.display();
    let mut flags = strings(&[
        &format!(
            "--kubeconfig={}",
            layout.kubeconfig_of("controller-manager").display()
        ),
        "--bind-address=127.0.0.1",
        "--use-service-account-credentials=true",
        &format!("--service-account-private-key-file={pki}/sa.key"),
        &format!("--root-ca-file={pki}/ca.crt"),
        "--leader-elect=false",
    ]);
    if spec.pod_cidrs == PodCidrs::Node {
        flags.extend(strings(&[
            "--allocate-node-cidrs=true",
            &format!("--cluster-cidr={CLUSTER_CIDRS}"),
            &format!("--service-cluster-ip-range={SERVICE_CIDRS}"),
            "--node-cidr-mask-size-ipv4=24",
            "--node-cidr-mask-size-ipv6=64",
        ]));
    }
    flags.extend(spec.controller_flags.iter().cloned());
    flags
}

fn scheduler(layout: &Layout) -> Vec<String> {
    strings(&[
        &format!(
            "--kubeconfig={}",
            layout.kubeconfig_of("scheduler").display()
        ),
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ])
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
