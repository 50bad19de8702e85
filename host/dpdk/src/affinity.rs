//! Which CPUs this process may use, and pinning.

use std::io;
use std::mem::{size_of, zeroed};

/// The lowest CPU the calling thread may run on; 0 when the system does not tell.
pub(crate) fn first_allowed_cpu() -> usize {
    // SAFETY: cpu_set_t is a plain bit array, all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the set is as large as told; 0 means the calling thread.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if result != 0 {
        return 0;
    }
    // SAFETY: CPU_ISSET reads a bit inside the set: CPU_SETSIZE is its size.
    (0..libc::CPU_SETSIZE as usize)
        .find(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .unwrap_or(0)
}

/// Binds the calling thread to one CPU.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: as above; CPU_SET writes a bit inside the set, checked just before.
    let result = unsafe {
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether the process runs as root.
pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid cannot fail and touches no memory.
    unsafe { libc::geteuid() == 0 }
}
