// SPDX-License-Identifier: Apache-2.0

// Package kubeadmnode runs control-plane nodes for tests: genuine kubeadm, kubelet, containerd and static pods, each
// node in namespaces of its own on this machine, with nothing of the machine's changed.
//
// The test process runs in a private "hub" that test/e2e.sh makes: namespaces with a bridge to which the nodes are
// connected, and no way to any other network. So it talks to the API servers of all nodes, and two nodes can form one
// cluster. Everything in the hub ends with it, whatever ends the test process or the script.
//
//	10.77.0.1     the hub: the test process, and what it starts (KWOK)
//	10.77.0.2, …  the nodes
//	10.244.N.0/24 the pods of node 10.77.0.N
//
// What a node writes is in memory, and is gone with the hub; only the logs stay, in _output/e2e/logs.
package kubeadmnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// hubAddress is the test process's own address on the network of the nodes.
	hubAddress = "10.77.0.1"
	// nodeAddress is the pattern of the nodes' addresses, podSubnet that of their pods; %d is the node's number, from
	// 2.
	nodeAddress = "10.77.0.%d"
	podSubnet   = "10.244.%d.0/24"
	// serviceSubnet is kubeadm's default, serviceAddress the API server's in it.
	serviceSubnet  = "10.96.0.0/12"
	serviceAddress = "10.96.0.1"
	// bridge connects the nodes.
	bridge = "nodes"
	// nextScript is what to do when the tests were started by hand.
	nextScript = "sudo bash test/e2e.sh"
)

// Hub is where nodes are started.
type Hub struct {
	// programs is the folder of what nodes are made of, the stock kube-scheduler too; plugins is that of the CNI
	// plugins.
	programs, plugins string
	// version is the release of Kubernetes that kubeadm is told to install.
	version string
	// folder is on disk: it keeps the images that were built, and the logs.
	folder string
	// logs is where each node has a folder of logs.
	logs string
	// memory is a file system in memory, with the disks of the nodes; temporary is another, for the tests' temporary
	// files, and the nodes see it at the same path.
	memory, temporary string
	// checkout and output are seen by nodes at the same path as by the hub, read-only.
	checkout, output string
	// cgroup is the cgroup of all nodes, in every hierarchy.
	cgroup string
	// images are archives of what kubeadm starts, pauseImage is the name of one of them.
	images     []string
	pauseImage string
	opened     time.Time

	mutex sync.Mutex
	// nodes are the nodes that were not closed, by number.
	nodes map[int]*Node
}

// Open prepares the hub in which the calling process runs: its network, memory for the nodes, and the images. It may be
// called once in a process. It refuses to run anywhere but where test/e2e.sh puts it.
func Open(ctx context.Context) (*Hub, error) {
	h := &Hub{nodes: map[int]*Node{}, opened: time.Now()}
	for _, setting := range []struct {
		name  string
		value *string
	}{
		{"CHECKOUT", &h.checkout},
		{"OUTPUT", &h.output},
		{"FOLDER", &h.folder},
		{"LOGS", &h.logs},
		{"CGROUP", &h.cgroup},
		{"VERSION", &h.version},
		{"PROGRAMS", &h.programs},
		{"PLUGINS", &h.plugins},
	} {
		name := "KUBEADM_NODE_" + setting.name
		if *setting.value = os.Getenv(name); *setting.value == "" {
			return nil, fmt.Errorf("%s is not set: kubeadm nodes take root and private namespaces; next: %s", name, nextScript)
		}
	}
	h.memory = filepath.Join(h.folder, "memory")
	h.temporary = filepath.Join(h.folder, "temporary")
	if err := checkPrivate(); err != nil {
		return nil, err
	}
	if err := h.mount(ctx); err != nil {
		return nil, err
	}
	if err := h.connect(ctx); err != nil {
		return nil, err
	}
	if err := h.buildImages(ctx); err != nil {
		return nil, err
	}
	h.report("the hub is there, with %d images", len(h.images))
	return h, nil
}

// report writes a line of progress: what takes seconds is told when it is done.
func (h *Hub) report(format string, arguments ...any) {
	fmt.Printf("%6.1f s  %s\n", time.Since(h.opened).Seconds(), fmt.Sprintf(format, arguments...))
}

// checkPrivate refuses a network that leads anywhere: what is done next would be done to the machine.
func checkPrivate() error {
	if os.Getuid() != 0 {
		return fmt.Errorf("nodes take root, and this is user %d; next: %s", os.Getuid(), nextScript)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("the network interfaces cannot be listed: %w; next: ip link", err)
	}
	for _, found := range interfaces {
		if found.Flags&net.FlagLoopback == 0 && found.Flags&net.FlagUp != 0 {
			return fmt.Errorf("this network is not private, it has %s; next: %s", found.Name, nextScript)
		}
	}
	return nil
}

// mount makes the file systems in memory, and hides the machine's name servers.
func (h *Hub) mount(ctx context.Context) error {
	for _, folder := range []string{h.memory, h.temporary} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := run(ctx, "mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", folder); err != nil {
			return err
		}
	}
	empty := filepath.Join(h.memory, "resolv.conf")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		return err
	}
	if _, err := os.Stat("/etc/resolv.conf"); err == nil {
		if err := run(ctx, "mount", "--bind", empty, "/etc/resolv.conf"); err != nil {
			return err
		}
	}
	return os.Setenv("TMPDIR", h.temporary)
}

// connect makes the hub's side of the network.
func (h *Hub) connect(ctx context.Context) error {
	for _, arguments := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", bridge, "type", "bridge"},
		{"address", "add", hubAddress + "/24", "dev", bridge},
		{"link", "set", bridge, "up"},
	} {
		if err := run(ctx, "ip", arguments...); err != nil {
			return err
		}
	}
	// From the pods of one node to those of another the way is through the hub.
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// Close ends every node that still runs, and removes the cgroups.
func (h *Hub) Close() error {
	var failures []error
	for _, node := range h.running() {
		failures = append(failures, node.Close())
	}
	return errors.Join(append(failures, removeCgroup(h.cgroup))...)
}

// Checkout is the root of this repository. Nodes see it at the same path, and cannot write there.
func (h *Hub) Checkout() string { return h.checkout }

// Output is _output, or what OUTPUT says. Nodes see it at the same path, and cannot write there.
func (h *Hub) Output() string { return h.output }

// PauseImage is the name of an image that every node has, and that does nothing: for pods of the tests.
func (h *Hub) PauseImage() string { return h.pauseImage }

// running gives the nodes that were not closed.
func (h *Hub) running() []*Node {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var nodes []*Node
	for _, node := range h.nodes {
		nodes = append(nodes, node)
	}
	return nodes
}

// claim gives a node the lowest number that is free. No other node has its name.
func (h *Hub) claim(node *Node) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, other := range h.nodes {
		if other.name == node.name {
			return fmt.Errorf("there is a node %s already; next: close it, or take another name", node.name)
		}
	}
	for node.number = 2; h.nodes[node.number] != nil; node.number++ {
	}
	h.nodes[node.number] = node
	return nil
}

// release makes a node's number free again.
func (h *Hub) release(node *Node) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.nodes, node.number)
}

// run runs a program of the machine in the hub; the error has what it wrote.
func run(ctx context.Context, name string, arguments ...string) error {
	output, err := exec.CommandContext(ctx, name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s; next: run it by hand in: unshare --mount --net bash",
			name, strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
