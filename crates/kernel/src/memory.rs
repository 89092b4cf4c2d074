//! The memory of this process: how much of it stays resident. Owns what is said to the C library's allocator and to
//! the kernel about pages; allocates nothing itself.

use crate::sys;

/// Heaps that threads share. By itself the C library gives each thread one, up to eight a processor, and what one
/// thread frees in its heap no other uses.
const HEAPS: i32 = 2;
/// A block of that size is given back to the kernel when it is freed, also after larger ones came and went.
const LARGE: i32 = 128 << 10;

/// Keeps the heap small from now on: call it before there are threads.
pub fn keep_small() {
    sys::set_allocator(HEAPS, LARGE);
}

/// Gives back what only the start of the process needed: free pages of the heap, and pages of code and constants,
/// which come back from their files when they are used again.
pub fn give_back() {
    sys::trim_heap();
    sys::drop_program_pages();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_goes_on_with_less() {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|l| l.strip_prefix("RssFile:"));
            let number = line.unwrap().trim().trim_end_matches(" kB");
            number.parse::<u64>().unwrap()
        };
        let before = resident();
        give_back();
        assert!(resident() < before);
        assert!(std::panic::catch_unwind(|| panic!("unwinding reads constants")).is_err());
    }
}
