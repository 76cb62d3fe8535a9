#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first process of a node. It creates the node's own view of the machine, and then keeps containerd and kubelet
# running, and Docker if kubelet uses that, like systemd on a real node. All processes of the node end with it, even if
# it is killed.
#
# Node.Boot of the package kubeadmnode starts it in new namespaces of all kinds except cgroups. Standard input receives
# "wired" once the network interface exists. Standard output receives "ready" at the end.
#
# Inputs (environment): NODE_NAME, NODE_ADDRESS, NODE_SERVICE (the address of the API server's service), HUB_ADDRESS,
#   NODE_CGROUP (the cgroup to be in), NODE_FOLDER (keeps the node's disk), NODE_LOGS, NODE_BINARIES, NODE_SHARED
#   (directories that the node sees at the same path, read-only), NODE_TEMPORARY (another one, which is writable),
#   NODE_FILES (its initial files), NODE_DOCKER (true or false).
set -o errexit -o nounset -o pipefail
umask 022

# Each cgroup hierarchy: type, where it is mounted, options.
hierarchies() { awk '$3 == "cgroup" || $3 == "cgroup2" { print $3, $2, $4 }' /proc/self/mounts; }

if [[ ${1:-} != inside ]]; then
  while read -r _ mounted _; do echo 0 > "$mounted/$NODE_CGROUP/cgroup.procs"; done < <(hierarchies)
  # From here on the node's cgroup is the root of all cgroups that it sees.
  exec unshare --cgroup bash "$0" inside
fi

mount --make-rprivate /
hostname "$NODE_NAME"
root=$NODE_FOLDER/root
mkdir -p "$root" "$NODE_FOLDER/"{upper,work,containerd,docker}
# A new node must not see the files of a cluster that the machine itself belongs to, or of its users. Whiteouts hide
# files of any size at once.
new=
if [[ ! -e $NODE_FOLDER/booted ]]; then
  new=yes
  for path in etc/{kubernetes,cni,containerd,docker,hosts,resolv.conf} var/lib/{kubelet,etcd,cni,kube-scheduler-swap} usr/bin/crictl \
    root home; do
    mkdir -p "$NODE_FOLDER/upper/$(dirname "$path")"
    mknod "$NODE_FOLDER/upper/$path" c 0 0
  done
fi
# The lower layer is the machine, and the upper layer has the node's writes, so the machine's files do not change.
mount -t overlay -o "lowerdir=/,upperdir=$NODE_FOLDER/upper,workdir=$NODE_FOLDER/work" overlay "$root"
if [[ $new ]]; then
  mkdir -p "$root/etc/kubernetes" "$root/var/lib/kubelet" "$root/home"
  mkdir -m 700 "$root/root"
  printf '127.0.0.1 localhost\n%s %s\n' "$NODE_ADDRESS" "$NODE_NAME" > "$root/etc/hosts"
  : > "$root/etc/resolv.conf"
  for program in kubelet kubeadm kubectl; do ln -sf "$NODE_BINARIES/$program" "$root/usr/bin/$program"; done
  cp -r "$NODE_FILES/." "$root/"
  chmod +x "$root/usr/bin/crictl" "$root/usr/local/sbin/runc-for-docker"
  touch "$NODE_FOLDER/booted"
fi

mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"

# The sysfs of this network namespace, with the cgroups of this cgroup namespace.
mount -t sysfs sysfs "$root/sys"
if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
  # cgroup v2. This part is untested.
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  # A cgroup that enables controllers for its children must not have processes.
  mkdir -p "$root/sys/fs/cgroup/init"
  echo 0 > "$root/sys/fs/cgroup/init/cgroup.procs"
  for controller in $(< "$root/sys/fs/cgroup/cgroup.controllers"); do
    echo "+$controller" > "$root/sys/fs/cgroup/cgroup.subtree_control"
  done
else
  mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
  controllers=$(awk 'NR > 1 { print $1 }' /proc/cgroups | paste -sd '|')
  while read -r type mounted options; do
    mkdir -p "$root$mounted"
    # Only the options that identify the hierarchy.
    kind=$(tr , '\n' <<< "$options" | grep -xE "name=.*|$controllers" | paste -sd ,) || true
    [[ $kind != name=* ]] || kind=none,$kind
    mount -t "$type" ${kind:+-o "$kind"} cgroup "$root$mounted"
  done < <(hierarchies)
fi

# The files of containerd and Docker are outside the root's overlay, because the kernel does not support that many
# overlay layers.
mkdir -p "$root"/var/lib/{containerd,docker} "$root/var/log"
for program in containerd docker; do mount --bind "$NODE_FOLDER/$program" "$root/var/lib/$program"; done
mount --bind "$NODE_LOGS" "$root/var/log"
for folder in $NODE_SHARED; do
  mkdir -p "$root$folder"
  mount --bind "$folder" "$root$folder"
  mount -o remount,bind,ro "$root$folder"
done
mount --bind "$NODE_TEMPORARY" "$root$NODE_TEMPORARY"

mkdir -p "$root/.machine"
pivot_root "$root" "$root/.machine"
cd /
umount --lazy /.machine
rmdir /.machine
mount --make-rshared /

# kubelet sets these for the whole machine. Here it writes the node's own files instead.
mkdir -p /run/lock /run/sysctl
for setting in vm/{overcommit_memory,panic_on_oom} kernel/{panic,panic_on_oops,keys/root_maxkeys,keys/root_maxbytes}; do
  [[ -e /proc/sys/$setting ]] || continue
  cat "/proc/sys/$setting" > "/run/sysctl/${setting//\//.}"
  mount --bind "/run/sysctl/${setting//\//.}" "/proc/sys/$setting"
done

read -r wired && [[ $wired == wired ]]
ip link set lo up
ip address add "$NODE_ADDRESS/24" dev eth0
ip link set eth0 up
# The hub has routes to the pods of all nodes, and no other routes.
ip route add default via "$HUB_ADDRESS"
echo 1 > /proc/sys/net/ipv4/ip_forward
# Otherwise orphaned connections would keep this network namespace for minutes after the end of the node.
echo 1 > /proc/sys/net/ipv4/tcp_orphan_retries
echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables
# This replaces kube-proxy for the only service that is needed, from pods and from the node itself.
for chain in PREROUTING OUTPUT; do
  iptables --wait -t nat -A "$chain" -d "$NODE_SERVICE" -p tcp --dport 443 -j DNAT --to-destination "$NODE_ADDRESS:6443"
done

# keep NAME COMMAND... restarts a command whenever it ends, and writes its output to a log.
keep() {
  local name=$1
  shift
  while :; do
    ("$@") < /dev/null >> "/var/log/$name.log" 2>&1 || echo "$name ended with status $?" >> "/var/log/$name.log"
    sleep 1
  done
}
# The same as in the unit file of kubeadm's packages. kubeadm writes the file with the arguments last.
kubelet() {
  local KUBELET_KUBEADM_ARGS arguments
  until [[ -s /var/lib/kubelet/kubeadm-flags.env ]]; do sleep 0.2; done
  # shellcheck source=/dev/null
  source /var/lib/kubelet/kubeadm-flags.env
  read -ra arguments <<< "$KUBELET_KUBEADM_ARGS"
  exec /usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf \
    --config=/var/lib/kubelet/config.yaml "${arguments[@]}"
}
keep containerd /usr/bin/containerd &
until ctr version > /dev/null 2>&1; do sleep 0.1; done
if [[ $NODE_DOCKER == true ]]; then
  keep dockerd /usr/sbin/dockerd &
  until docker version > /dev/null 2>&1; do sleep 0.1; done
fi
keep kubelet kubelet &
echo ready
exec > /dev/null
wait
