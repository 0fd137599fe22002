//! Names of probes: unique, and with their owner, so that leftovers can be removed.

use std::fs;
use std::io;

/// The process that registers probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Inode of the PID namespace.
    namespace: u64,
    pid: u32,
    /// When it started, as numbers of processes are used again.
    started: u64,
}

impl Owner {
    /// Returns this process.
    pub(super) fn current() -> io::Result<Self> {
        let link = fs::read_link("/proc/self/ns/pid")?;
        let number: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        let pid = std::process::id();
        let started = started(pid)
            .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat cannot be read")))?;
        Ok(Self { namespace: number.parse().unwrap_or(0), pid, started })
    }

    pub(super) fn name(&self, number: usize) -> String {
        format!("p{}_{}_{}_{number}", self.namespace, self.pid, self.started)
    }

    /// Returns the names of the probes in a list whose owners have ended. Processes of other
    /// namespaces are not known here.
    pub(super) fn left_over(&self, list: &str, group: &str) -> Vec<String> {
        let names = list.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split(' ').next()?.strip_prefix(group)?.strip_prefix('/')
        });
        names
            .filter(|name| {
                let owner = Self::parse(name);
                owner.is_some_and(|owner| {
                    owner.namespace == self.namespace && started(owner.pid) != Some(owner.started)
                })
            })
            .map(str::to_owned)
            .collect()
    }

    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix('p')?.split('_');
        let (namespace, pid, started) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            namespace: namespace.parse().ok()?,
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        })
    }
}

/// Returns when a process started, in clock ticks since the machine did.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may have any characters. It is followed by the state, field 3; the start is
    // field 22.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_left_is_told_from_what_is_in_use() {
        let me = Owner::current().unwrap();
        assert!(me.started > 0 && me.namespace > 0);
        assert_eq!(Owner::parse(&me.name(3)), Some(me.clone()));
        let dead = Owner { pid: 0x7fff_fff0, ..me.clone() };
        let reused = Owner { started: me.started + 1, ..me.clone() };
        let elsewhere = Owner { namespace: 1, ..dead.clone() };
        let names = [&me, &dead, &reused, &elsewhere].map(|owner| owner.name(0));
        let mut list: String = names
            .iter()
            .map(|name| format!("p:recrep/{name} /bin/x:0x0000000000001139\n"))
            .collect();
        list.push_str("p:probe_x/main /bin/x:0x1\nr:recrep/other /bin/x:0x1\nbroken\n");
        assert_eq!(me.left_over(&list, "recrep"), [dead.name(0), reused.name(0)]);
    }

    #[test]
    fn names_fit_into_the_kernel_s_limit() {
        let most = Owner { namespace: u32::MAX.into(), pid: 1 << 22, started: u64::MAX };
        assert!(most.name(9999).len() < 64);
    }
}
