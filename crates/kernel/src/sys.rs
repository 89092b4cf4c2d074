//! The calls that no safe wrapper covers: socket options by number, the kind of a
//! namespace, a namespace of one's own, a frame to a link, and this process's memory. The only `unsafe` of the project.
//!
//! Never interprets anything: integers and descriptors go in, integers or an `io::Error` come out.

#![allow(unsafe_code)]

use rustix::thread::UnshareFlags;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `setsockopt` with an `int`.
pub(crate) fn set_option(fd: impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the kernel
    // only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// `getsockopt` of a `u64`.
pub(crate) fn get_option_u64(fd: impl AsFd, level: i32, name: i32) -> io::Result<u64> {
    let mut value = 0_u64;
    // SAFETY: any bit pattern is a valid `u64`.
    unsafe { get_option(fd, level, name, &mut value) }?;
    Ok(value)
}

/// Process and user of the peer of a unix socket; process 0 if it cannot be seen from here.
pub(crate) fn peer_credentials(fd: impl AsFd) -> io::Result<(i32, u32)> {
    let (pid, uid, gid) = (0, u32::MAX, u32::MAX);
    let mut value = libc::ucred { pid, uid, gid };
    // SAFETY: it is made of integers, so any bit pattern is valid.
    unsafe { get_option(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut value) }?;
    Ok((value.pid, value.uid))
}

/// SAFETY: for a type of which any bit pattern is a valid value.
unsafe fn get_option<T>(fd: impl AsFd, level: i32, name: i32, value: &mut T) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let to = (&raw mut *value).cast();
    // SAFETY: pointer and length describe `value`, which outlives the call.
    let result =
        unsafe { libc::getsockopt(fd.as_fd().as_raw_fd(), level, name, to, &raw mut length) };
    check(result).map(drop)
}

/// The signals that a thread does not get.
pub(crate) struct Mask(libc::sigset_t);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

impl Mask {
    /// Makes it that of the calling thread.
    pub(crate) fn restore(&self) -> io::Result<()> {
        change_mask(libc::SIG_SETMASK, &self.0).map(drop)
    }
}

/// Blocks the signals that ask a process to stop in the calling thread and those that it starts; gives the mask
/// from before.
pub(crate) fn block_stop_signals() -> io::Result<Mask> {
    change_mask(libc::SIG_BLOCK, &stop_signals())
}

fn change_mask(how: i32, set: &libc::sigset_t) -> io::Result<Mask> {
    let mut before = no_signals();
    // SAFETY: both sets are initialised and outlive the call, which only writes the second.
    match unsafe { libc::pthread_sigmask(how, set, &raw mut before) } {
        0 => Ok(Mask(before)),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Waits for one of them, which must be blocked.
pub(crate) fn wait_for_stop_signal() -> io::Result<i32> {
    let set = stop_signals();
    let mut signal = 0;
    // SAFETY: both pointers are to initialised values that outlive the call.
    match unsafe { libc::sigwait(&raw const set, &raw mut signal) } {
        0 => Ok(signal),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

fn no_signals() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the whole set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn stop_signals() -> libc::sigset_t {
    let mut set = no_signals();
    let hangup = (!is_ignored(libc::SIGHUP)).then_some(libc::SIGHUP);
    for signal in [libc::SIGTERM, libc::SIGINT].into_iter().chain(hangup) {
        // SAFETY: the set is initialised, and the number is that of a signal.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// A blocked signal is delivered to who waits for it even if it is ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: sigaction is plain integers and pointers, for which all zeroes is a valid value.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is set; `now` outlives the call, which only writes it.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// The kind of a namespace, as a `CLONE_NEW…` constant.
pub(crate) fn namespace_kind(fd: impl AsFd) -> io::Result<i32> {
    // SAFETY: NS_GET_NSTYPE takes no argument and touches no memory of ours; on a descriptor of
    // another kind it fails with ENOTTY.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::NS_GET_NSTYPE) })
}

/// Gives the calling thread a new, empty network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: only CLONE_NEWNET is asked for: the descriptor table and memory stay shared, which
    // is what the I/O-safety rule of `unshare` is about.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// Gives the calling thread a copy of its mount namespace for itself; of a process with one thread,
/// that is the process.
pub(crate) fn unshare_mounts() -> io::Result<()> {
    // SAFETY: only CLONE_NEWNS is asked for: the descriptor table and memory stay shared, which
    // is what the I/O-safety rule of `unshare` is about.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.map_err(io::Error::from)
}

/// How many heaps threads share, and from which size on a block is the kernel's again when it is freed. Only of the
/// GNU C library: others have no such options.
pub(crate) fn set_allocator(heaps: i32, large: i32) {
    #[cfg(target_env = "gnu")]
    {
        let options = [
            (libc::M_ARENA_MAX, heaps),
            (libc::M_MMAP_THRESHOLD, large),
            (libc::M_TRIM_THRESHOLD, large),
        ];
        for (option, value) in options {
            // SAFETY: the numbers are those of options, which change nothing that was allocated.
            unsafe { libc::mallopt(option, value) };
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = (heaps, large);
}

/// Gives free pages of the heap back to the kernel.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: only pages that are free are given back.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Takes the pages of programs and libraries out of memory that nobody ever wrote to: code and constants. Whoever
/// uses one next gets it from its file.
pub(crate) fn drop_program_pages() {
    // SAFETY: the callback takes what it is handed for nothing but what it is, and leaves the pointer to data alone.
    unsafe { libc::dl_iterate_phdr(Some(drop_unwritten), std::ptr::null_mut()) };
}

/// SAFETY: to be called by `dl_iterate_phdr` alone, which hands it one loaded object.
unsafe extern "C" fn drop_unwritten(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(page) = usize::try_from(page)
        .ok()
        .filter(|page| page.is_power_of_two())
    else {
        return 1;
    };
    // SAFETY: the caller's pointer is good for the time of the call, and so are the headers that it names.
    let (base, headers) = unsafe {
        let object = &*object;
        let count = usize::from(object.dlpi_phnum);
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, count);
        (object.dlpi_addr as usize, headers)
    };
    for header in headers {
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
            continue;
        }
        let start = base.wrapping_add(header.p_vaddr as usize);
        let end = start.wrapping_add(header.p_memsz as usize) & !(page - 1);
        let start = start.next_multiple_of(page);
        let first = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
        // SAFETY: whole pages of a segment that is mapped from a file and was never writable: what is in memory is what
        // the file has, so nobody sees a difference.
        unsafe { libc::madvise(first, end.saturating_sub(start), libc::MADV_DONTNEED) };
    }
    0
}

/// Sends a whole Ethernet frame out of a link through a packet socket.
pub(crate) fn send_frame(fd: impl AsFd, link: u32, frame: &[u8]) -> io::Result<()> {
    // SAFETY: sockaddr_ll is plain integers, for which all zeroes is a valid value.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_ifindex = link as i32;
    to.sll_halen = 6;
    if let (Some(protocol), Some(target)) = (frame.get(12..14), frame.get(..6)) {
        to.sll_protocol = u16::from_ne_bytes([protocol[0], protocol[1]]);
        to.sll_addr[..6].copy_from_slice(target);
    }
    // SAFETY: both pointers are given with the length of what they point to, and both outlive the
    // call; the kernel only reads them.
    let sent = unsafe {
        libc::sendto(
            fd.as_fd().as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            (&raw const to).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    check(sent as i32).map(drop)
}

fn check(result: i32) -> io::Result<i32> {
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_blocked_before_stays_blocked() {
        let is_blocked = |signal| {
            let Mask(now) = change_mask(libc::SIG_BLOCK, &no_signals()).unwrap();
            // SAFETY: `now` is initialised and outlives the call.
            unsafe { libc::sigismember(&raw const now, signal) == 1 }
        };
        let unblocked = block_stop_signals().unwrap();
        let inner = block_stop_signals().unwrap();
        inner.restore().unwrap();
        assert!(is_blocked(libc::SIGTERM) && is_blocked(libc::SIGINT));
        unblocked.restore().unwrap();
        assert!(!is_blocked(libc::SIGTERM) && !is_blocked(libc::SIGINT));
    }

    #[test]
    fn a_closed_terminal_stops_who_does_not_ignore_it() {
        let stops = |action: libc::sighandler_t| {
            // SAFETY: the action is one of the two that are no functions, and nobody sends this process the signal.
            unsafe { libc::signal(libc::SIGHUP, action) };
            let set = stop_signals();
            // SAFETY: `set` is initialised and outlives the call.
            unsafe { libc::sigismember(&raw const set, libc::SIGHUP) == 1 }
        };
        assert!(stops(libc::SIG_DFL));
        assert!(!stops(libc::SIG_IGN));
        assert!(stops(libc::SIG_DFL));
    }
}
