//! The two namespaces, their veth pairs, and their removal.
//!
//! Names carry the process id: `weirlab-<pid>-c` and `-s`, with the wire's ends `wlc<pid>` and `wls<pid>` in the
//! namespace that the lab runs in. Removing a namespace removes its veth pair, both ends.

use crate::error::LabError;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

const NAME_PREFIX: &str = "weirlab-";
/// Address of the client.
pub(crate) const CLIENT_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Address of the server.
pub(crate) const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const CLIENT_MAC: &str = "02:57:45:49:52:01";
const SERVER_MAC: &str = "02:57:45:49:52:02";
/// Largest payload of a frame.
pub(crate) const MTU: usize = 1500;

/// A namespace with one veth pair; removed when dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    /// The wire's end of the veth pair.
    pub(crate) wire_end: String,
}

/// Both hosts.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// The client's namespace.
    pub(crate) client: Namespace,
    /// The server's namespace.
    pub(crate) server: Namespace,
}

impl Hosts {
    /// Removes leftovers of killed runs, then makes both namespaces.
    pub(crate) fn create() -> Result<Hosts, LabError> {
        remove_leftovers()?;
        let client = Namespace::create('c')?;
        let server = Namespace::create('s')?;
        client.connect(CLIENT_ADDRESS, CLIENT_MAC, SERVER_ADDRESS, SERVER_MAC)?;
        server.connect(SERVER_ADDRESS, SERVER_MAC, CLIENT_ADDRESS, CLIENT_MAC)?;
        Ok(Hosts { client, server })
    }
}

impl Namespace {
    fn create(side: char) -> Result<Namespace, LabError> {
        let pid = std::process::id();
        let name = format!("{NAME_PREFIX}{pid}-{side}");
        run("ip", &["netns", "add", &name])?;
        // Only from here on is it ours to remove.
        Ok(Namespace {
            name,
            wire_end: format!("wl{side}{pid}"),
        })
    }

    /// Makes the veth pair. Neighbours are static, so that no ARP crosses the wire, and IPv6 is off, so that nothing
    /// but the application's traffic does.
    fn connect(&self, address: Ipv4Addr, mac: &str, peer: Ipv4Addr, peer_mac: &str) -> Result<(), LabError> {
        let (name, wire_end) = (self.name.as_str(), self.wire_end.as_str());
        let mtu = MTU.to_string();
        run(
            "ip",
            &[
                "link", "add", wire_end, "mtu", &mtu, "type", "veth", "peer", "name", "eth0", "mtu", &mtu, "address",
                mac, "netns", name,
            ],
        )?;
        self.set("net.ipv6.conf.all.disable_ipv6", "1")?;
        write_sysctl_here(&format!("net/ipv6/conf/{wire_end}/disable_ipv6"), "1");
        // Segments and checksums must be those of the wire, not of a card that is not there.
        run(
            "ip",
            &[
                "netns", "exec", name, "ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off",
            ],
        )?;
        run(
            "ip",
            &["-n", name, "address", "add", &format!("{address}/24"), "dev", "eth0"],
        )?;
        run("ip", &["-n", name, "link", "set", "lo", "up"])?;
        run("ip", &["-n", name, "link", "set", "eth0", "up"])?;
        run("ip", &["link", "set", wire_end, "up"])?;
        run(
            "ip",
            &[
                "-n",
                name,
                "neighbour",
                "add",
                &peer.to_string(),
                "lladdr",
                peer_mac,
                "dev",
                "eth0",
                "nud",
                "permanent",
            ],
        )
    }

    /// Changes a kernel setting of this namespace.
    pub(crate) fn set(&self, key: &str, value: &str) -> Result<(), LabError> {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        // The value is an argument of the shell, never part of its program.
        let program = "if [ -e \"$1\" ]; then printf '%s' \"$2\" > \"$1\"; else echo \"no setting $1\" >&2; exit 1; fi";
        let is_optional = key.starts_with("net.ipv6.") && !Path::new("/proc/sys/net/ipv6").exists();
        if is_optional {
            return Ok(());
        }
        run(
            "ip",
            &["netns", "exec", &self.name, "sh", "-c", program, "sh", &path, value],
        )
    }

    /// A command that will run in this namespace.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; the next run removes what stays.
        let _ = run("ip", &["link", "delete", &self.wire_end]);
        let _ = run("ip", &["netns", "delete", &self.name]);
    }
}

/// Frames that an interface of this namespace has received.
pub(crate) fn frames_received(interface: &str) -> Option<u64> {
    let path = format!("/sys/class/net/{interface}/statistics/rx_packets");
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn write_sysctl_here(path: &str, value: &str) {
    // Absent without IPv6: then there is nothing to switch off.
    let _ = std::fs::write(Path::new("/proc/sys").join(path), value);
}

/// Removes namespaces of lab processes that are no more.
fn remove_leftovers() -> Result<(), LabError> {
    let Ok(entries) = std::fs::read_dir("/run/netns") else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((pid, side)) = name.strip_prefix(NAME_PREFIX).and_then(owner)
            && !Path::new(&format!("/proc/{pid}")).exists()
        {
            let _ = run("ip", &["link", "delete", &format!("wl{side}{pid}")]);
            run("ip", &["netns", "delete", &name])?;
        }
    }
    Ok(())
}

/// Process id and side of a namespace's name after the prefix.
fn owner(rest: &str) -> Option<(u32, &str)> {
    let (pid, side) = rest.split_once('-')?;
    matches!(side, "c" | "s").then_some((pid.parse().ok()?, side))
}

/// Runs a command of the system to its end.
fn run(program: &str, arguments: &[&str]) -> Result<(), LabError> {
    let failed = |problem: String| LabError::Command {
        command: format!("{program} {}", arguments.join(" ")),
        problem,
    };
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("{error}; install it with: apt-get install iproute2 ethtool")))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
    Err(failed(
        if message.contains("ethtool") && message.contains("No such file") {
            format!("{message}; install it with: apt-get install ethtool")
        } else {
            message
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::owner;

    #[test]
    fn only_the_labs_own_names_are_leftovers() {
        assert_eq!(owner("123-c"), Some((123, "c")));
        assert_eq!(owner("123-s"), Some((123, "s")));
        assert_eq!(owner("123-x"), None);
        assert_eq!(owner("abc-c"), None);
        assert_eq!(owner("123"), None);
    }
}
