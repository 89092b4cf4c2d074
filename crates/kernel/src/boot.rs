//! Which boot of the machine this is.

use std::io;

/// The boot id cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the boot id from {BOOT_ID}: is /proc mounted?")]
pub struct BootIdError(#[source] pub io::Error);

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The kernel's id of the current boot: differs after every restart of the machine.
pub fn boot_id() -> Result<String, BootIdError> {
    std::fs::read_to_string(BOOT_ID)
        .map(|text| text.trim().to_owned())
        .map_err(BootIdError)
}
