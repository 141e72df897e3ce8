#!/usr/bin/env bash
# Makes a container engine answer: finds a running one, else starts the installed one, else (Debian, root) installs and starts one.
# Does nothing where `docker info` already answers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"

answers() { docker info >/dev/null 2>&1; }

# A process id of a previous boot can belong to another program by now; the engine then refuses to start.
remove_stale_pid() {
  local file=$1 program=$2 pid
  pid=$(cat "$file" 2>/dev/null) || return 0
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$program" ] || rm -f "$file"
}

# Machines without an init system have the control groups in the kernel, but nobody mounted them.
mount_control_groups() {
  local controller
  if ! grep -q ' /sys/fs/cgroup' /proc/mounts; then
    say "mounting control groups"
    mount -t cgroup2 none /sys/fs/cgroup && return
    mount -t tmpfs -o mode=755 none /sys/fs/cgroup
    for controller in $(awk '!/^#/ && $4 == 1 {print $1}' /proc/cgroups); do
      mkdir -p "/sys/fs/cgroup/$controller"
      mount -t cgroup -o "$controller" none "/sys/fs/cgroup/$controller" || rmdir "/sys/fs/cgroup/$controller"
    done
  fi
  # systemd in kind's nodes keeps its processes in a hierarchy of this name when there is no unified one
  if grep -q '^[^ ]* /sys/fs/cgroup tmpfs' /proc/mounts && ! grep -q 'name=systemd' /proc/mounts; then
    mkdir -p /sys/fs/cgroup/systemd
    mount -t cgroup -o none,name=systemd none /sys/fs/cgroup/systemd
  fi
}

configure_runtime() {
  local file=/etc/docker/daemon.json
  has_every_capability && return
  "$here/apt.sh" jq=jq
  install -m 755 "$here/runc-capped" /usr/local/bin/runc-capped
  mkdir -p /etc/docker
  [ -s "$file" ] || echo '{}' > "$file"
  jq '.runtimes["runc-capped"].path = "/usr/local/bin/runc-capped" | .["default-runtime"] = "runc-capped"' "$file" > "$file.new"
  mv "$file.new" "$file"
  say "this machine withholds CAP_SYS_RESOURCE: containers run with runc-capped"
}

start() {
  local log=$cache/dockerd.log
  if [ -d /run/systemd/system ]; then
    systemctl start docker
  else
    remove_stale_pid /var/run/docker.pid dockerd
    remove_stale_pid /var/run/docker/containerd/containerd.pid containerd
    # a containerd that was killed leaves its socket behind, and dockerd would wait for it instead of starting its own
    grep -qsx containerd /proc/[0-9]*/comm || rm -f /run/containerd/containerd.sock /run/containerd/containerd.sock.ttrpc
    # detached from every descriptor and from the session, so that it outlives this script and holds neither a pipe nor a lock of its caller
    (
      for descriptor in /proc/self/fd/*; do
        descriptor=${descriptor##*/}
        [ "$descriptor" -le 2 ] || eval "exec $descriptor>&-"
      done
      exec setsid nohup dockerd >"$log" 2>&1 </dev/null
    ) &
  fi
  for _ in $(seq 240); do
    answers && return
    sleep 0.25
  done
  tail -5 "$log" >&2 2>/dev/null || true
  fail "the container engine did not answer within 60 s; see $log"
}

# The nodes' programs together watch more files than the kernel's default lets one user watch.
raise_watch_limits() {
  [ "$(id -u)" = 0 ] && [ -w /proc/sys/fs/inotify/max_user_instances ] || return 0
  [ "$(cat /proc/sys/fs/inotify/max_user_instances)" -ge 1024 ] || echo 1024 > /proc/sys/fs/inotify/max_user_instances
  [ "$(cat /proc/sys/fs/inotify/max_user_watches)" -ge 524288 ] || echo 524288 > /proc/sys/fs/inotify/max_user_watches
}

if ! answers; then
  if [ "$(id -u)" != 0 ] || [ "$(uname)" != Linux ]; then
    fail "no container engine answers: start Docker (\`docker info\` must work for this user), then run this again."
  fi
  "$here/apt.sh" dockerd=docker.io docker=docker.io iptables=iptables
  configure_runtime
  mount_control_groups
  say "starting the container engine"
  start
fi
raise_watch_limits
say "container engine: $(docker info --format '{{.Name}}, version {{.ServerVersion}}, cgroup v{{.CgroupVersion}}' 2>/dev/null)"
