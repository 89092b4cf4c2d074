//! One watch, from its beginning to its end: a task that follows the log and fills a channel.

use super::event::{Encoder, Kind};
use crate::status::Refused;
use crate::store::{Change, Entry, ListScope, Stored, Unknown};
use crate::table::Form;
use crate::verbs::{Api, Selection, Subject, is_reached};
use hyper::body::Bytes;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// Changes that are taken from the log at a time.
const BATCH: usize = 256;
/// A piece is sent when it is as large as this.
const CHUNK_BYTES: usize = 48 << 10;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// With what exists; `marked`: a bookmark says when that is all.
    WithWhatExists { marked: bool, not_older_than: u64 },
    /// With what happens from now on.
    Now,
    /// With what has happened since.
    After(u64),
}

/// A watch.
pub(super) struct Stream {
    pub(super) api: Arc<Api>,
    pub(super) subject: Subject,
    pub(super) selection: Selection,
    pub(super) form: Form,
    pub(super) bookmarks: bool,
    pub(super) duration: Duration,
}

/// Why a watch ends early.
enum End {
    /// Nobody listens any more.
    Disconnected,
    /// It cannot go on.
    Refused(Refused),
}

impl From<Refused> for End {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Stream {
    /// Runs until its time is up, the peer has gone, or the server ends.
    pub(super) async fn run(self, beginning: Beginning, pieces: mpsc::Sender<Bytes>) {
        let end = Instant::now() + self.duration;
        let mut encoder = Encoder::new(self.form);
        let ended = tokio::select! {
            ended = self.send_events(beginning, &mut encoder, &pieces) => ended,
            () = sleep_until(end) => return,
            () = self.api.stop.requested() => return,
            () = pieces.closed() => return,
        };
        if let Err(End::Refused(refused)) = ended {
            let _ = pieces.send(Encoder::error(&refused)).await;
        }
    }

    async fn send_events(
        &self,
        beginning: Beginning,
        encoder: &mut Encoder,
        pieces: &mpsc::Sender<Bytes>,
    ) -> Result<(), End> {
        // Subscribed before anything is read: no change is missed in between.
        let mut changed = self.api.store.follow(self.subject.table);
        let mut sent_version = match beginning {
            Beginning::After(version) => version,
            Beginning::Now => self.api.store.version(),
            Beginning::WithWhatExists {
                marked,
                not_older_than,
            } => {
                if !is_reached(&self.api, not_older_than).await {
                    return Err(self.too_new(not_older_than).into());
                }
                let version = self.exists(encoder, pieces).await?;
                if marked && self.bookmarks {
                    encoder.bookmark(&self.subject, version, true);
                    self.send(encoder, pieces).await?;
                }
                version
            }
        };
        let often = self.api.bookmarks;
        let mut minute = interval_at(Instant::now() + often, often);
        minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            changed.mark_unchanged();
            sent_version = self.catch_up(sent_version, encoder, pieces).await?;
            tokio::select! {
                alive = changed.changed() => if alive.is_err() { return Ok(()) },
                _ = minute.tick(), if self.bookmarks => {
                    sent_version = self.catch_up(sent_version, encoder, pieces).await?;
                    encoder.bookmark(&self.subject, sent_version, false);
                    self.send(encoder, pieces).await?;
                }
            }
        }
    }

    /// Tells what exists, and the version that this is of.
    async fn exists(
        &self,
        encoder: &mut Encoder,
        pieces: &mpsc::Sender<Bytes>,
    ) -> Result<u64, End> {
        let namespace = Some(self.subject.namespace.as_str()).filter(|name| !name.is_empty());
        let part = ListScope {
            namespace,
            after: None,
        };
        let (objects, version) = self.api.store.list(self.subject.table, part);
        // Nothing of the past is kept for a slow peer, here too.
        let listed: Vec<Weak<Stored>> = objects.iter().map(Arc::downgrade).collect();
        drop(objects);
        for object in listed {
            let Some(object) = object.upgrade() else {
                return Err(self.overtaken(version).into());
            };
            if self.selection.has(&self.subject, &object) {
                encoder.event(&self.subject, Kind::Added, &object)?;
                if encoder.len() >= CHUNK_BYTES {
                    self.send(encoder, pieces).await?;
                }
            }
        }
        self.send(encoder, pieces).await?;
        Ok(version)
    }

    /// Tells every change after a version; gives the version that is reached.
    async fn catch_up(
        &self,
        mut sent_version: u64,
        encoder: &mut Encoder,
        pieces: &mpsc::Sender<Bytes>,
    ) -> Result<u64, End> {
        let table = self.subject.table;
        loop {
            let found = self.api.store.changes(table, sent_version, BATCH);
            let (entries, upto) = found.map_err(|unknown| self.expired(sent_version, unknown))?;
            let all = entries.len() < BATCH;
            sent_version = upto;
            let mut cut = false;
            for entry in &entries {
                self.change(entry, encoder)?;
                if encoder.len() >= CHUNK_BYTES {
                    sent_version = entry.version();
                    cut = true;
                    break;
                }
            }
            // Nothing of the past is kept for a slow peer: if the log forgets what is next, it is told so.
            drop(entries);
            self.send(encoder, pieces).await?;
            if all && !cut {
                return Ok(sent_version);
            }
        }
    }

    /// Entering a selection is coming, leaving it is going.
    fn change(&self, entry: &Entry, encoder: &mut Encoder) -> Result<(), Refused> {
        let subject = &self.subject;
        let object = &entry.object;
        let here = subject.namespace.is_empty() || object.key.namespace() == subject.namespace;
        if !here {
            return Ok(());
        }
        let before = entry
            .before
            .as_ref()
            .filter(|old| self.selection.has(subject, old));
        let after = entry.change != Change::Deleted && self.selection.has(subject, object);
        match (before, after) {
            (None, true) => encoder.event(subject, Kind::Added, object),
            (Some(_), true) => encoder.event(subject, Kind::Modified, object),
            (Some(_), false) if entry.change == Change::Deleted => {
                encoder.event(subject, Kind::Deleted, object)
            }
            (Some(old), false) => encoder.left(subject, old, object.version),
            (None, false) => Ok(()),
        }
    }

    /// Hands over what was collected. A peer has to take a piece in the time in which others have to take a
    /// byte: what it has not taken is kept for it.
    async fn send(&self, encoder: &mut Encoder, pieces: &mpsc::Sender<Bytes>) -> Result<(), End> {
        let Some(piece) = encoder.take() else {
            return Ok(());
        };
        match tokio::time::timeout(self.api.stalled, pieces.send(piece)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Disconnected),
        }
    }

    fn too_new(&self, version: u64) -> Refused {
        let newest = self.api.store.version();
        Refused::expired(format!(
            "too large resource version: {version}, current: {newest}"
        ))
    }

    /// What existed at a version has changed, and the log has forgotten it, before the peer took it.
    fn overtaken(&self, version: u64) -> Refused {
        let newest = self.api.store.version();
        Refused::expired(format!("too old resource version: {version} ({newest})"))
    }

    fn expired(&self, version: u64, unknown: Unknown) -> Refused {
        let newest = self.api.store.version();
        if version > newest {
            return self.too_new(version);
        }
        let oldest = unknown.oldest;
        Refused::expired(format!("too old resource version: {version} ({oldest})"))
    }
}
