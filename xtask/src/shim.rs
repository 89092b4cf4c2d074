//! The two promises of the shipped `plexus-cni`: it is small, and it needs nothing at run time.

use anyhow::{Context, Result, bail};
use std::path::Path;

const MAX_SHIM_BYTES: usize = 600_000;
const PROGRAM_HEADER_INTERPRETER: u32 = 3;

/// Fails when the binary at `path` breaks a promise, and says which.
pub(crate) fn check(path: &Path) -> Result<()> {
    let elf = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if elf.len() > MAX_SHIM_BYTES {
        bail!(
            "{} has {} bytes, at most {MAX_SHIM_BYTES} are allowed: see what `cargo bloat` or `nm -S` \
             shows; a new dependency is the likely cause",
            path.display(),
            elf.len()
        );
    }
    match has_interpreter(&elf) {
        Some(false) => Ok(()),
        Some(true) => bail!(
            "{} asks for a dynamic loader: it must be static",
            path.display()
        ),
        None => bail!("{} is no little-endian 64-bit ELF file", path.display()),
    }
}

fn has_interpreter(elf: &[u8]) -> Option<bool> {
    if elf.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let offset = usize::try_from(u64::from_le_bytes(elf.get(32..40)?.try_into().ok()?)).ok()?;
    let size = usize::from(u16::from_le_bytes(elf.get(54..56)?.try_into().ok()?));
    let count = usize::from(u16::from_le_bytes(elf.get(56..58)?.try_into().ok()?));
    for index in 0..count {
        let start = offset.checked_add(index * size)?;
        let kind = u32::from_le_bytes(elf.get(start..start.checked_add(4)?)?.try_into().ok()?);
        if kind == PROGRAM_HEADER_INTERPRETER {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::has_interpreter;

    fn elf_with_headers(kinds: &[u32]) -> Vec<u8> {
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[32] = 64;
        elf[54] = 56;
        elf[56] = kinds.len() as u8;
        for kind in kinds {
            elf.extend(kind.to_le_bytes());
            elf.extend([0; 52]);
        }
        elf
    }

    #[test]
    fn a_loader_is_noticed() {
        assert_eq!(has_interpreter(&elf_with_headers(&[1, 2])), Some(false));
        assert_eq!(has_interpreter(&elf_with_headers(&[1, 3])), Some(true));
    }

    #[test]
    fn this_test_itself_is_dynamic() {
        let elf = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(has_interpreter(&elf), Some(true));
    }

    #[test]
    fn garbage_is_no_binary() {
        assert_eq!(has_interpreter(b"#!/bin/sh"), None);
        let cut = &elf_with_headers(&[1, 2])[..70];
        assert_eq!(has_interpreter(cut), None);
    }
}
