// SPDX-License-Identifier: Apache-2.0

// Package kubeadmnode runs control-plane nodes for tests: genuine kubeadm, kubelet, containerd or Docker, and static
// pods. Each node has its own namespaces on this machine, and the machine itself is not changed.
//
// The test process runs in a private "hub" that test/e2e.sh creates: namespaces with a bridge that connects the nodes,
// and no route to any other network. So it can reach the API servers of all nodes, and two nodes can form a cluster.
// Everything in the hub ends with it, even if the test process or the script is killed.
//
//	10.77.0.1     the hub: the test process, and what it starts (KWOK)
//	10.77.0.2, …  the nodes
//	10.244.N.0/24 the pods of node 10.77.0.N
//
// A node's files are in memory, and disappear with the hub; only the logs remain, in _output/e2e/logs.
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
	// nodeAddress is the format of the nodes' addresses, podSubnet
	// that of their pods' subnets; %d is the node's number, from 2.
	nodeAddress = "10.77.0.%d"
	podSubnet   = "10.244.%d.0/24"
	// serviceSubnet is kubeadm's default, serviceAddress the API server's in it.
	serviceSubnet  = "10.96.0.0/12"
	serviceAddress = "10.96.0.1"
	// bridge connects the nodes.
	bridge = "nodes"
	// nextScript is the advice if the tests were started without the script.
	nextScript = "sudo bash test/e2e.sh"
)

// Hub starts nodes.
type Hub struct {
	// programs is the directory of the nodes' programs, including the
	// stock kube-scheduler; plugins is that of the CNI plugins.
	programs, plugins string
	// version is the Kubernetes release that kubeadm installs.
	version string
	// folder is a directory on disk for the built images and the logs.
	folder string
	// logs has a directory of logs for each node.
	logs string
	// memory is a file system in memory with the disks of the nodes; temporary is another one for the tests' temporary
	// files, which the nodes see at the same path.
	memory, temporary string
	// checkout and output have the same paths on the nodes as in the hub, read-only.
	checkout, output string
	// cgroup is the cgroup of all nodes, in every hierarchy.
	cgroup string
	// images are archives of the images that kubeadm starts, pauseImage is the name of one of them.
	images     []string
	pauseImage string
	opened     time.Time

	mutex sync.Mutex
	// nodes are the open nodes, by number.
	nodes map[int]*Node
}

// Open prepares the hub in which the calling process runs: its network, memory for the nodes, and the images. It may be
// called once per process. It fails unless test/e2e.sh started the process.
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
			return nil, fmt.Errorf("%s is not set: kubeadm nodes need root and private namespaces; next: %s", name, nextScript)
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
	h.report("the hub is ready, with %d images", len(h.images))
	return h, nil
}

// report writes a line of progress, for completed steps that take seconds.
func (h *Hub) report(format string, arguments ...any) {
	fmt.Printf("%6.1f s  %s\n", time.Since(h.opened).Seconds(), fmt.Sprintf(format, arguments...))
}

// checkPrivate returns an error unless this is root in a network without other interfaces. Otherwise the next steps
// would change the machine.
func checkPrivate() error {
	if os.Getuid() != 0 {
		return fmt.Errorf("nodes need root, but this is user %d; next: %s", os.Getuid(), nextScript)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("the network interfaces cannot be listed: %w; next: ip link", err)
	}
	for _, found := range interfaces {
		if found.Flags&net.FlagLoopback == 0 && found.Flags&net.FlagUp != 0 {
			return fmt.Errorf("this network is not private: it has the interface %s; next: %s", found.Name, nextScript)
		}
	}
	return nil
}

// mount creates the file systems in memory, and hides the machine's name servers.
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

// connect creates the hub's side of the network.
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
	// Traffic between the pods of different nodes is routed through the hub.
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// Close closes all open nodes and removes the cgroups.
func (h *Hub) Close() error {
	var failures []error
	for _, node := range h.running() {
		failures = append(failures, node.Close())
	}
	return errors.Join(append(failures, removeCgroup(h.cgroup))...)
}

// Checkout returns the root of this repository. Nodes have it at the same path, read-only.
func (h *Hub) Checkout() string { return h.checkout }

// Output returns _output, or the value of OUTPUT. Nodes have it at the same path, read-only.
func (h *Hub) Output() string { return h.output }

// PauseImage returns the name of an image on every node that does nothing, for pods of the tests.
func (h *Hub) PauseImage() string { return h.pauseImage }

// running returns the open nodes.
func (h *Hub) running() []*Node {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var nodes []*Node
	for _, node := range h.nodes {
		nodes = append(nodes, node)
	}
	return nodes
}

// claim gives a node the lowest free number. Its name must be unique.
func (h *Hub) claim(node *Node) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, other := range h.nodes {
		if other.name == node.name {
			return fmt.Errorf("the node %s already exists; next: close it, or use another name", node.name)
		}
	}
	for node.number = 2; h.nodes[node.number] != nil; node.number++ {
	}
	h.nodes[node.number] = node
	return nil
}

// release frees a node's number.
func (h *Hub) release(node *Node) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.nodes, node.number)
}

// run runs a program of the machine in the hub; the error includes its output.
func run(ctx context.Context, name string, arguments ...string) error {
	output, err := exec.CommandContext(ctx, name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s; next: run it manually in: unshare --mount --net bash",
			name, strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
