//! etcd and kube-apiserver on loopback, and nothing else of a cluster: no controller and no node
//! takes anything from them while they are measured.

use crate::directory;
use crate::http::Client;
use anyhow::{Context, Result, bail};
use base64::Engine;
use serde_json::json;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Long enough for a first start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// An authority, the server's certificate and an administrator's.
const CERTIFICATES: &str = r#"set -e
key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
openssl req -x509 -days 2 -subj /CN=bench-ca $key -keyout ca.key -out ca.crt
openssl ecparam -name prime256v1 -genkey -noout -out sa.key
openssl ec -in sa.key -pubout -out sa.pub
for one in server admin; do
  printf 'extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=IP:127.0.0.1\n' > $one.ext
  openssl req -subj "/O=system:masters/CN=$one" $key -keyout $one.key -out $one.csr
  openssl x509 -req -days 2 -in $one.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile $one.ext -out $one.crt
done
"#;

/// Both processes; they and what they wrote go with this.
pub(crate) struct Real {
    processes: Vec<Child>,
    dir: PathBuf,
}

impl Real {
    pub(crate) fn start() -> Result<Self> {
        let mut real = Self {
            processes: Vec::new(),
            dir: directory("real")?,
        };
        let dir = real.dir.clone();
        let made = Command::new("sh")
            .args(["-c", CERTIFICATES])
            .current_dir(&dir)
            .output()
            .context("cannot run sh")?;
        if !made.status.success() {
            bail!("no certificates: {}", String::from_utf8_lossy(&made.stderr));
        }
        let (store, peers, port) = (free_port()?, free_port()?, free_port()?);
        let store = format!("http://127.0.0.1:{store}");
        // Flushed to the disk, which is what it does unless told otherwise.
        real.spawn(
            "PLEXUS_ETCD",
            "etcd",
            &[
                format!("--data-dir={}", dir.join("etcd").display()),
                format!("--listen-client-urls={store}"),
                format!("--advertise-client-urls={store}"),
                format!("--listen-peer-urls=http://127.0.0.1:{peers}"),
                "--log-level=warn".to_owned(),
            ],
        )?;
        let file = |name: &str| dir.join(name).display().to_string();
        real.spawn(
            "PLEXUS_KUBE_APISERVER",
            "kube-apiserver",
            &[
                format!("--etcd-servers={store}"),
                "--bind-address=127.0.0.1".to_owned(),
                "--advertise-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                format!("--tls-cert-file={}", file("server.crt")),
                format!("--tls-private-key-file={}", file("server.key")),
                format!("--client-ca-file={}", file("ca.crt")),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                format!("--service-account-key-file={}", file("sa.pub")),
                format!("--service-account-signing-key-file={}", file("sa.key")),
                "--authorization-mode=RBAC".to_owned(),
                "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
                "--endpoint-reconciler-type=none".to_owned(),
            ],
        )?;
        real.write_kubeconfig(port)?;
        real.wait()?;
        Ok(real)
    }

    /// With everything in it, as ours has.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Child::id).collect()
    }

    fn spawn(&mut self, variable: &str, name: &str, flags: &[String]) -> Result<()> {
        let program = std::env::var_os(variable)
            .with_context(|| format!("{variable} is not set: run make bench-embedded"))?;
        let log = File::create(self.log(name)).context("cannot write a log")?;
        let process = Command::new(program)
            .args(flags)
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {name}: make kube-tools builds it"))?;
        self.processes.push(process);
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            let mut client = Client::tls(&self.kubeconfig());
            if client
                .send("GET", "/readyz", "", None)
                .is_ok_and(|answer| answer.code == 200)
            {
                return Ok(());
            }
            for process in &mut self.processes {
                let ended = process.try_wait()?;
                if ended.is_some() || Instant::now() > end {
                    let printed = fs::read_to_string(self.log("kube-apiserver"))?;
                    let last = printed.lines().last().unwrap_or_default();
                    bail!("kube-apiserver is not ready; its last words: {last}");
                }
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn write_kubeconfig(&self, port: u16) -> Result<()> {
        let encoded = |name: &str| -> Result<String> {
            let bytes = fs::read(self.dir.join(name))?;
            Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
        };
        let config = json!({
            "clusters": [{"cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority-data": encoded("ca.crt")?,
            }}],
            "users": [{"user": {
                "client-certificate-data": encoded("admin.crt")?,
                "client-key-data": encoded("admin.key")?,
            }}],
        });
        fs::write(self.kubeconfig(), config.to_string()).context("cannot write a kubeconfig")
    }

    fn log(&self, name: &str) -> PathBuf {
        Path::new(&self.dir).join(format!("{name}.log"))
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // The API server first: without its store it takes long to end.
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?.port())
}
