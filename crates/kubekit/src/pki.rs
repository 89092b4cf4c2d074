//! Keys, certificates and kubeconfigs of one lab, made by `openssl`. Valid for a month: a lab lives
//! for minutes.

use crate::command::run;
use crate::layout::{
    API_PORT, CONTROL_PLANE_V4, CONTROL_PLANE_V6, Layout, index_of, node_v4, node_v6,
};
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::Path;

const NEW_KEY: [&str; 5] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
];

/// The authority, the key of service accounts, and who the control plane consists of.
pub(crate) fn make(layout: &Layout) -> Result<()> {
    let pki = layout.pki();
    fs::create_dir_all(&pki).with_context(|| format!("cannot make {}", pki.display()))?;
    let file = |name: &str| pki.join(name).display().to_string();
    let (ca_key, ca) = (file("ca.key"), file("ca.crt"));
    let mut authority = vec![
        "openssl",
        "req",
        "-x509",
        "-days",
        "30",
        "-subj",
        "/CN=lab-ca",
    ];
    authority.extend(NEW_KEY);
    authority.extend(["-keyout", &ca_key, "-out", &ca]);
    run(&authority)?;
    let (sa, public) = (file("sa.key"), file("sa.pub"));
    run(&[
        "openssl",
        "ecparam",
        "-name",
        "prime256v1",
        "-genkey",
        "-noout",
        "-out",
        &sa,
    ])?;
    run(&["openssl", "ec", "-in", &sa, "-pubout", "-out", &public])?;

    let server = format!(
        "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1,\
         IP:{CONTROL_PLANE_V4},IP:{CONTROL_PLANE_V6},IP:10.96.0.1,IP:fd00:96::1"
    );
    certificate(&pki, "apiserver", "/CN=kube-apiserver", &server)?;
    for (user, subject) in [
        ("admin", "/O=system:masters/CN=admin"),
        ("controller-manager", "/CN=system:kube-controller-manager"),
        ("scheduler", "/CN=system:kube-scheduler"),
        ("kube-proxy", "/CN=system:kube-proxy"),
    ] {
        certificate(&pki, user, subject, "")?;
        kubeconfig(layout, user, &inside(), &layout.kubeconfig_of(user))?;
    }
    Ok(())
}

/// A node's certificate, for its kubelet as server and as client.
pub(crate) fn make_node(layout: &Layout, node: &str) -> Result<()> {
    let index = index_of(node)?;
    let names = format!("DNS:{node},IP:{},IP:{}", node_v4(index), node_v6(index));
    let subject = format!("/O=system:nodes/CN=system:node:{node}");
    certificate(&layout.pki(), node, &subject, &names)?;
    kubeconfig(layout, node, &inside(), &layout.kubeconfig_of(node))
}

/// The administrator's, through the relay on this port of the caller's loopback.
pub(crate) fn make_outside(layout: &Layout, port: u16) -> Result<()> {
    let server = format!("https://127.0.0.1:{port}");
    kubeconfig(layout, "admin", &server, &layout.kubeconfig())
}

fn inside() -> String {
    format!("https://{CONTROL_PLANE_V4}:{API_PORT}")
}

fn certificate(pki: &Path, name: &str, subject: &str, names: &str) -> Result<()> {
    let file = |ending: &str| pki.join(format!("{name}.{ending}")).display().to_string();
    let (key, request, extensions, signed) = (file("key"), file("csr"), file("ext"), file("crt"));
    let mut text = "keyUsage=digitalSignature,keyEncipherment\n\
                    extendedKeyUsage=serverAuth,clientAuth\n"
        .to_owned();
    if !names.is_empty() {
        text.push_str(&format!("subjectAltName={names}\n"));
    }
    fs::write(&extensions, text).with_context(|| format!("cannot write {extensions}"))?;
    let mut ask = vec!["openssl", "req", "-subj", subject];
    ask.extend(NEW_KEY);
    ask.extend(["-keyout", &key, "-out", &request]);
    run(&ask)?;
    let (ca, ca_key) = (
        pki.join("ca.crt").display().to_string(),
        pki.join("ca.key").display().to_string(),
    );
    run(&[
        "openssl",
        "x509",
        "-req",
        "-days",
        "30",
        "-in",
        &request,
        "-CA",
        &ca,
        "-CAkey",
        &ca_key,
        "-CAcreateserial",
        "-extfile",
        &extensions,
        "-out",
        &signed,
    ])?;
    Ok(())
}

fn kubeconfig(layout: &Layout, user: &str, server: &str, path: &Path) -> Result<()> {
    let pki = layout.pki();
    let name = layout.prefix();
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "clusters": [{"name": name, "cluster": {
            "server": server,
            "certificate-authority": pki.join("ca.crt"),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate": pki.join(format!("{user}.crt")),
            "client-key": pki.join(format!("{user}.key")),
        }}],
    });
    fs::write(path, serde_json::to_vec_pretty(&config)?)
        .with_context(|| format!("cannot write {}", path.display()))
}
