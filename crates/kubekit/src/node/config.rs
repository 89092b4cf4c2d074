//! What a node's programs read: containerd's, kubelet's, kube-proxy's and crictl's configuration.

use crate::layout::{CLUSTER_CIDRS, Layout};
use crate::spec::{ProxyMode, Spec};
use crate::tools::Tools;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;

pub(super) const CONTAINERD: &str = "containerd.toml";
pub(super) const KUBELET: &str = "kubelet.yaml";
pub(super) const KUBE_PROXY: &str = "kube-proxy.yaml";

/// Writes all of them. crictl's goes below `/etc`, before that is mounted.
pub(super) fn write(layout: &Layout, spec: &Spec, tools: &Tools, node: &str) -> Result<()> {
    let dir = layout.node(node);
    let files = [
        (CONTAINERD, containerd(tools)),
        (
            KUBELET,
            serde_json::to_string_pretty(&kubelet(layout, node))?,
        ),
        (
            KUBE_PROXY,
            serde_json::to_string_pretty(&kube_proxy(layout, spec, node))?,
        ),
        (
            "etc/crictl.yaml",
            "runtime-endpoint: unix:///run/containerd/containerd.sock\n\
             image-endpoint: unix:///run/containerd/containerd.sock\ntimeout: 10\n"
                .to_owned(),
        ),
    ];
    for (name, text) in files {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Without CAP_SYS_RESOURCE the score of the out-of-memory killer can only be raised.
fn containerd(tools: &Tools) -> String {
    format!(
        r#"version = 4

[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = 'localhost/pause:1'

[plugins.'io.containerd.cri.v1.runtime']
  enable_unprivileged_ports = false
  enable_unprivileged_icmp = false
  restrict_oom_score_adj = true
  enable_cdi = true
  cdi_spec_dirs = ['/etc/cdi', '/var/run/cdi']
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['/opt/cni/bin']
    conf_dir = '/etc/cni/net.d'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '{}'
      SystemdCgroup = false

[plugins.'io.containerd.nri.v1.nri']
  disable = false
  socket_path = '/run/nri/nri.sock'
"#,
        tools.runc.display()
    )
}

fn kubelet(layout: &Layout, node: &str) -> Value {
    let pki = layout.pki();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", layout.namespace(node)),
        "failSwapOn": false,
        "enforceNodeAllocatable": [],
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki.join("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "address": "::",
        "healthzBindAddress": "127.0.0.1",
        "tlsCertFile": pki.join(format!("{node}.crt")),
        "tlsPrivateKeyFile": pki.join(format!("{node}.key")),
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "staticPodPath": layout.static_pods(node),
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "resolvConf": "",
        "clusterDNS": [],
        "maxPods": 250,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 100,
        "kubeAPIBurst": 200,
        "serializeImagePulls": false,
        // Images come from archives, not from a registry: one that is collected would be gone for good.
        "imageGCHighThresholdPercent": 100,
        // Agents are killed on purpose: they need not wait minutes to come back.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "2s"},
        // The disk is the machine's: what else fills it must not evict a test's pods.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
    })
}

/// Limits and timeouts of conntrack are the machine's, not a namespace's: left alone.
fn kube_proxy(layout: &Layout, spec: &Spec, node: &str) -> Value {
    let mode = match spec.proxy {
        ProxyMode::Nftables => "nftables",
        ProxyMode::Iptables => "iptables",
    };
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": mode,
        "hostnameOverride": node,
        "clientConnection": {"kubeconfig": layout.kubeconfig_of("kube-proxy")},
        "clusterCIDR": CLUSTER_CIDRS,
        "detectLocalMode": "ClusterCIDR",
        "nodePortAddresses": ["primary"],
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        "nftables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
        "iptables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
    })
}
