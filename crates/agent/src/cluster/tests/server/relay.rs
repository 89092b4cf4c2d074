//! A way to the API server that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

pub(super) struct Relay {
    open: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    pub(super) kubeconfig: PathBuf,
}

impl Relay {
    /// To the server of a kubeconfig; its own kubeconfig lies in `directory`.
    pub(super) fn to(kubeconfig: &Path, directory: &Path) -> Self {
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        let start = text.find("https://").unwrap() + "https://".len();
        let end = text[start..].find(['"', '\n', ' ', '/']).unwrap() + start;
        let server: SocketAddr = text[start..end].parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap().to_string();
        std::fs::create_dir_all(directory).unwrap();
        let own = directory.join("kubeconfig");
        std::fs::write(&own, text.replace(&text[start..end], &here)).unwrap();
        let open = Arc::new(AtomicBool::new(true));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let (is_open, all) = (Arc::clone(&open), Arc::clone(&streams));
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                if !is_open.load(SeqCst) {
                    continue;
                }
                let Ok(to) = TcpStream::connect(server) else {
                    continue;
                };
                let mut all = all.lock().unwrap();
                all.push(from.try_clone().unwrap());
                all.push(to.try_clone().unwrap());
                pump(from.try_clone().unwrap(), to.try_clone().unwrap());
                pump(to, from);
            }
        });
        Self {
            open,
            streams,
            kubeconfig: own,
        }
    }

    /// Cuts what is open, and refuses what comes.
    pub(super) fn cut(&self) {
        self.open.store(false, SeqCst);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn mend(&self) {
        self.open.store(true, SeqCst);
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let mut buffer = [0; 16384];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
