//! tracefs for a command's time, whatever the machine has mounted: in a mount namespace of its own
//! (`unshare`, util-linux).
//!
//! There, perf's plugins can be out of sight, too: where they are installed perf prints some events
//! in words of its own, not as the kernel does.

use std::process::Command;

/// The command where tracefs is mounted.
pub fn with_tracefs(command: &Command) -> Command {
    in_namespace("mount -t tracefs nodev /sys/kernel/tracing", command)
}

/// The command where it is not.
pub fn without_tracefs(command: &Command) -> Command {
    in_namespace("umount -a -t tracefs,debugfs", command)
}

/// The command where perf finds no plugins that print events.
pub fn without_plugins(command: &Command) -> Command {
    let hide = "for dir in /usr/lib*/traceevent/plugins /usr/lib/*/traceevent/plugins \
                /usr/local/lib*/traceevent/plugins; do if [ -d \"$dir\" ]; then mount -t tmpfs \
                none \"$dir\"; fi; done";
    in_namespace(hide, command)
}

/// One program after another in the same process, by exec; the last is the command's.
fn in_namespace(mounts: &str, command: &Command) -> Command {
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "sh", "-c", &format!("{mounts}; exec \"$0\" \"$@\"")]);
    inside.arg(command.get_program()).args(command.get_args());
    inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    inside
}
