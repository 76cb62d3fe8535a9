// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kube-scheduler-fork/build/logtail"
)

// bootDeadline limits the time until the container runtime answers: many times the duration on a slow, busy machine.
const bootDeadline = time.Minute

//go:embed boot
var bootFiles embed.FS

// NodeOptions describe a node.
type NodeOptions struct {
	// Name is the node's host name.
	Name string
	// Docker makes kubelet use Docker instead of containerd, through its dockershim.
	Docker bool
}

// Node appears to its programs as a separate machine, with containerd,
// kubeadm, and a kubelet that waits for kubeadm's configuration.
type Node struct {
	hub *Hub
	// number is the last part of the node's address.
	number  int
	name    string
	docker  bool
	address string
	// folder is a directory in memory with the node's disk, which remains while the node is off. logs is a directory on
	// disk, which is kept.
	folder, logs string
	cgroup       string

	// cluster is the data that another node needs to join, after Init.
	cluster *invitation

	mutex sync.Mutex
	// first is the node's first process; nil while it is off.
	first *exec.Cmd
	// stopKWOK stops KWOK if it was started.
	stopKWOK func()
}

// Start starts a node and loads the images that kubeadm needs. If that fails, it removes everything.
func (h *Hub) Start(ctx context.Context, options NodeOptions) (*Node, error) {
	n := &Node{hub: h, name: options.Name, docker: options.Docker}
	if problems := validation.IsDNS1123Label(n.name); len(problems) > 0 {
		return nil, fmt.Errorf("%q is not a valid node name: %s; next: use another name", n.name, strings.Join(problems, "; "))
	}
	if err := h.claim(n); err != nil {
		return nil, err
	}
	n.address = fmt.Sprintf(nodeAddress, n.number)
	n.folder = filepath.Join(h.memory, n.name)
	n.logs = filepath.Join(h.logs, n.name)
	n.cgroup = h.cgroup + "/" + n.name
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	if err := os.MkdirAll(n.logs, 0o755); err != nil {
		return err
	}
	if err := n.writeFiles(); err != nil {
		return err
	}
	if err := n.hub.route(ctx, n); err != nil {
		return err
	}
	if err := n.Boot(ctx); err != nil {
		return err
	}
	for _, archive := range n.hub.images {
		if err := n.Import(ctx, archive); err != nil {
			return err
		}
	}
	n.hub.report("%s: the images are loaded", n.name)
	return nil
}

// writeFiles writes the node's initial files to its directory.
func (n *Node) writeFiles() error {
	values := struct{ Pause, Plugins, Pods string }{n.hub.pauseImage, n.hub.plugins, n.podSubnet()}
	for source, target := range map[string]string{
		"boot.sh":         "boot.sh",
		"crictl":          "files/usr/bin/crictl",
		"containerd.toml": "files/etc/containerd/config.toml",
		"cni.conflist":    "files/etc/cni/net.d/10-pods.conflist",
		"docker.json":     "files/etc/docker/daemon.json",
		"runc-for-docker": "files/usr/local/sbin/runc-for-docker",
	} {
		content, err := bootFiles.ReadFile("boot/" + source)
		if err != nil {
			return err
		}
		parsed, err := template.New(source).Parse(string(content))
		if err != nil {
			return err
		}
		var filled bytes.Buffer
		if err := parsed.Execute(&filled, values); err != nil {
			return err
		}
		target = filepath.Join(n.folder, target)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, filled.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) podSubnet() string { return fmt.Sprintf(podSubnet, n.number) }

// route routes the traffic for the node's pods to the node.
func (h *Hub) route(ctx context.Context, n *Node) error {
	return run(ctx, "ip", "route", "replace", n.podSubnet(), "via", n.address)
}

// Boot starts a node. After PowerCut the node still has its disk. Boot returns when the runtime answers; kubelet then
// starts the pods. Until kubelet has reported them, the API server has the previous state.
func (n *Node) Boot(ctx context.Context) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.first != nil {
		return fmt.Errorf("%s is already running; next: call PowerCut first", n.name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bootDeadline, fmt.Errorf("not up after %s", bootDeadline))
	defer cancel()
	if err := makeCgroup(n.cgroup); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(n.logs, "boot.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	first := exec.Command("/bin/bash", filepath.Join(n.folder, "boot.sh"))
	first.Dir = "/"
	first.Stderr = log
	first.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C", "TZ=UTC",
		"NODE_NAME=" + n.name,
		"NODE_ADDRESS=" + n.address,
		"NODE_SERVICE=" + serviceAddress,
		"HUB_ADDRESS=" + hubAddress,
		"NODE_CGROUP=" + n.cgroup,
		"NODE_FOLDER=" + n.folder,
		"NODE_FILES=" + filepath.Join(n.folder, "files"),
		"NODE_LOGS=" + n.logs,
		"NODE_BINARIES=" + n.hub.programs,
		"NODE_SHARED=" + n.hub.checkout + " " + n.hub.output,
		"NODE_TEMPORARY=" + n.hub.temporary,
		fmt.Sprintf("NODE_DOCKER=%t", n.docker),
	}
	first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		// Ctrl-C in a terminal must reach only the tests, which stop the nodes.
		Setsid: true,
	}
	wired, err := first.StdinPipe()
	if err != nil {
		return err
	}
	ready, err := first.StdoutPipe()
	if err != nil {
		return err
	}
	if err := first.Start(); err != nil {
		return fmt.Errorf("%s cannot be started: %w; next: %s", n.name, err, nextScript)
	}
	n.first = first
	if err := n.wire(ctx); err != nil {
		return errors.Join(err, n.powerCut())
	}
	if _, err := io.WriteString(wired, "wired\n"); err != nil && !errors.Is(err, syscall.EPIPE) {
		return errors.Join(err, n.powerCut())
	}
	stop := context.AfterFunc(ctx, func() { _ = first.Process.Kill() })
	line, err := bufio.NewReader(ready).ReadString('\n')
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil || line != "ready\n" {
		return errors.Join(fmt.Errorf("%s did not start: %v\n%snext: correct test/e2e/kubeadmnode/boot/boot.sh", n.name, err,
			n.LogTail("boot", "containerd", "dockerd")), n.powerCut())
	}
	n.hub.report("%s: the container runtime answers, address %s", n.name, n.address)
	return nil
}

// cable is the hub's end of the link to the node.
func (n *Node) cable() string { return fmt.Sprintf("node-%d", n.number) }

// wire connects the node's eth0 to the bridge.
func (n *Node) wire(ctx context.Context) error {
	pid := fmt.Sprint(n.first.Process.Pid)
	if err := run(ctx, "ip", "link", "add", n.cable(), "type", "veth", "peer", "name", "eth0", "netns", pid); err != nil {
		return err
	}
	return run(ctx, "ip", "link", "set", n.cable(), "master", bridge, "up")
}

// PowerCut stops a node like a power failure: it kills all processes at once. The disk remains for Boot.
func (n *Node) PowerCut() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.powerCut()
}

func (n *Node) powerCut() error {
	if n.first == nil {
		return nil
	}
	// The link is removed first, because a node without power does not close its connections.
	var unplugged error
	if _, err := net.InterfaceByName(n.cable()); err == nil {
		unplugged = run(context.Background(), "ip", "link", "delete", n.cable())
	}
	// The kernel kills all processes of a PID namespace together with
	// the first one, and reports the end of the first one last.
	if err := n.first.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s cannot be stopped: %w; next: kill -9 %d", n.name, err, n.first.Process.Pid)
	}
	// An error is expected, because it was killed.
	_ = n.first.Wait()
	n.first = nil
	return errors.Join(unplugged, removeCgroup(n.cgroup))
}

// Close stops the node and deletes its disk. The logs are kept.
func (n *Node) Close() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.stopKWOK != nil {
		n.stopKWOK()
		n.stopKWOK = nil
	}
	err := errors.Join(n.powerCut(), os.RemoveAll(n.folder))
	n.hub.release(n)
	return err
}

// process returns the process id of the node's first process.
func (n *Node) process() (int, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.first == nil {
		return 0, fmt.Errorf("%s is off; next: call Boot", n.name)
	}
	return n.first.Process.Pid, nil
}

// Name returns the node's host name, which is also its name in the cluster.
func (n *Node) Name() string { return n.name }

// Address returns the node's own IP address.
func (n *Node) Address() string { return n.address }

// Logs returns the directory of the node's logs, its /var/log:
// kubelet.log, containerd.log, dockerd.log, boot.log, and those of the pods.
func (n *Node) Logs() string { return n.logs }

// Root returns the path of the node's root directory as seen from outside. It changes with every Boot.
func (n *Node) Root() string {
	pid, err := n.process()
	if err != nil {
		// This path does not exist, and shows the reason.
		return "/proc/" + n.name + "-is-off/root"
	}
	return fmt.Sprintf("/proc/%d/root", pid)
}

// Import loads the images of an archive into containerd or Docker, for kubelet. The archive is a path in the hub.
func (n *Node) Import(ctx context.Context, archive string) error {
	content, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("%w; next: make image", err)
	}
	defer content.Close()
	command := []string{"ctr", "--namespace", "k8s.io", "images", "import", "-"}
	if n.docker {
		command = []string{"docker", "load"}
	}
	load := n.Command(ctx, command[0], command[1:]...)
	load.Stdin = content
	if output, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("%s cannot import %s: %w: %s; next: tar tf %s", n.name, archive, err, logtail.Last(string(output), tailLines), archive)
	}
	return nil
}

// WriteFile writes a file inside the node, and creates its directories.
func (n *Node) WriteFile(path string, content []byte) error {
	target := filepath.Join(n.Root(), path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o644)
}

// Config returns a client configuration for the test process, as an administrator,
// for the API server of this node instead of the cluster's endpoint.
func (n *Node) Config() (*rest.Config, error) {
	kubeconfig, err := os.ReadFile(n.Root() + "/etc/kubernetes/admin.conf")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no cluster: %w; next: call Init or Join", n.name, err)
	} else if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Host = "https://" + n.address + ":6443"
	// The client's default limit is for a shared API server.
	config.QPS = -1
	return config, nil
}

// Client returns a client for Config.
func (n *Node) Client() (kubernetes.Interface, error) {
	config, err := n.Config()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
