//! Who is at the other end of a Unix socket, vouched for by the kernel (`SO_PEERCRED`, `SO_PEERGROUPS`; `unix(7)`).

#![expect(unsafe_code, reason = "getsockopt(2)")]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};

/// `NGROUPS_MAX`: no process has more.
const MOST: usize = 65_536;

/// Who connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The process; 0 if it is in a pid namespace that this process cannot see.
    pub pid: u32,
    /// Its effective user id then.
    pub uid: u32,
    /// Its effective group id then.
    pub gid: u32,
}

/// Who the peer of a connected Unix stream socket was when it connected.
///
/// (The same call of rustix cannot tell of a process without a pid.)
pub fn credentials(socket: BorrowedFd<'_>) -> Result<Credentials> {
    let mut told = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `told` has as many bytes as `bytes` says, any bits are a value of its integers, and both outlive the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut told).cast(),
            &raw mut bytes,
        )
    };
    if done != 0 {
        return Err(crate::last_errno());
    }
    if bytes as usize != size_of::<libc::ucred>() || told.uid == u32::MAX {
        // A socket that is not connected has no peer.
        return Err(Errno::NOTCONN);
    }
    Ok(Credentials { pid: u32::try_from(told.pid).unwrap_or(0), uid: told.uid, gid: told.gid })
}

/// The supplementary groups that the peer of a connected stream socket had when it connected. Unlike a look into
/// `/proc`, it cannot be another process that has the peer's pid by now.
pub fn groups(socket: BorrowedFd<'_>) -> Result<Vec<u32>> {
    let mut room = 64;
    loop {
        let mut groups = vec![0_u32; room];
        let mut bytes = (room * size_of::<u32>()) as libc::socklen_t;
        // SAFETY: the buffer has as many bytes as `bytes` says, and both it and `bytes` outlive the call.
        let done = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let count = bytes as usize / size_of::<u32>();
        match if done == 0 { Ok(()) } else { Err(crate::last_errno()) } {
            Ok(()) => {
                groups.truncate(count);
                return Ok(groups);
            }
            // The kernel says how much room it wants.
            Err(Errno::RANGE) if count > room && count <= MOST => room = count,
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_peer_of_a_pair_of_ours_has_our_groups() {
        let (here, _there) = UnixStream::pair().unwrap();
        let told = super::groups(here.as_fd()).unwrap();
        let own: Vec<u32> =
            rustix::process::getgroups().unwrap().iter().map(|group| group.as_raw()).collect();
        assert_eq!(told, own);
        let (pid, uid) = (std::process::id(), rustix::process::geteuid().as_raw());
        let gid = rustix::process::getegid().as_raw();
        assert_eq!(super::credentials(here.as_fd()), Ok(super::Credentials { pid, uid, gid }));
    }

    #[test]
    fn other_sockets_have_none_to_tell() {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(super::groups(tcp.as_fd()).is_err());
        assert!(super::credentials(tcp.as_fd()).is_err());
        let alone = std::os::unix::net::UnixDatagram::unbound().unwrap();
        assert_eq!(super::credentials(alone.as_fd()), Err(rustix::io::Errno::NOTCONN));
    }
}
