// SPDX-License-Identifier: Apache-2.0

// Package localcluster starts a Kubernetes control plane on loopback, for `make run` and for tests: etcd,
// kube-apiserver, fake nodes (KWOK), and one or more kube-schedulers. It needs neither root nor containers nor a
// network.
//
// Everything it writes is in one folder, and everything it starts is a child process. Stop ends both; after a crash
// of the parent, kill -9 included, the kernel ends the children and the next Start removes the folder.
//
// There is no controller manager: nodes, pods and their bindings are all that a scheduler needs.
//
// envtest of sigs.k8s.io/controller-runtime starts etcd and kube-apiserver, too. It is not used: its etcd takes
// requests from every user of the machine, its programs outlive a parent that is killed, and schedulers and KWOK would
// need the supervisor all the same.
package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

// Options say what a control plane is made of.
type Options struct {
	// Etcd, KubeAPIServer and KWOK are the programs to run.
	Etcd, KubeAPIServer, KWOK string
	// APIServerArguments follow the API server's own; of a flag that is there twice, the last one counts.
	APIServerArguments []string
	// Parent is the directory in which the folder of the run is made; empty is the system's directory for temporary
	// files.
	Parent string
	// Progress receives a line for each thing that starts or ends; it may be nil.
	Progress io.Writer
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	supervisor *supervisor.Supervisor
	authority  *Authority
	server     string
	kubeconfig string
	client     kubernetes.Interface
	// environment is what etcd, the API server and KWOK get: nothing of the caller's, which may hold ETCD_… or KWOK_…
	// settings, or point to configuration in the home directory.
	environment []string

	mutex sync.Mutex
	// schedulers are those that run.
	schedulers []*Scheduler
}

// Start starts etcd, the API server and KWOK, and returns when the API answers. When ctx ends before that, or something
// fails, it leaves nothing behind; later on ctx has no meaning. The caller calls Stop.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	for _, program := range []struct{ name, path, next string }{
		{"etcd", options.Etcd, nextEtcd},
		{"kube-apiserver", options.KubeAPIServer, nextAPIServer},
		{"kwok", options.KWOK, nextKWOK},
	} {
		if err := checkExecutable(program.name, program.path, program.next); err != nil {
			return nil, err
		}
	}
	c, err := newControlPlane(options)
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx, options); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// checkExecutable says what is wrong with the path of a program before anything is started.
func checkExecutable(name, path, next string) error {
	info, err := os.Stat(path)
	switch {
	case path == "":
		err = errors.New("no file was given")
	case err == nil && info.IsDir():
		err = fmt.Errorf("%s is a directory", path)
	case err == nil && info.Mode()&0o111 == 0:
		err = fmt.Errorf("%s is not executable", path)
	}
	if err != nil {
		return fmt.Errorf("cannot start %s: %w; next: %s", name, err, next)
	}
	return nil
}

// newControlPlane makes a control plane in which nothing runs yet.
func newControlPlane(options Options) (*ControlPlane, error) {
	authority, err := NewAuthority("local control plane")
	if err != nil {
		return nil, err
	}
	probing, err := authority.ClientConfig(adminUser, adminGroup)
	if err != nil {
		return nil, err
	}
	s, err := supervisor.New(options.Parent, probing, options.Progress)
	if err != nil {
		return nil, err
	}
	environment := []string{"HOME=" + s.Folder(), "TMPDIR=" + s.Folder()}
	return &ControlPlane{supervisor: s, authority: authority, environment: environment}, nil
}

func (c *ControlPlane) start(ctx context.Context, options Options) error {
	if _, err := c.write(authorityFile, c.authority.PEM()); err != nil {
		return err
	}
	etcd, err := c.startEtcd(ctx, options.Etcd)
	if err != nil {
		return err
	}
	if err := c.startAPIServer(ctx, options.KubeAPIServer, etcd, options.APIServerArguments); err != nil {
		return err
	}
	return c.startKWOK(ctx, options.KWOK)
}

// connect makes the administrator's kubeconfig and the client for the API server.
func (c *ControlPlane) connect(port int) error {
	c.server = "https://" + net.JoinHostPort(supervisor.Loopback, fmt.Sprint(port))
	var err error
	if c.kubeconfig, err = c.writeKubeconfig("admin.kubeconfig", adminUser, adminGroup); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	// The client's own limit is there to protect a shared API server, and would be what is measured here.
	config.QPS = -1
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *ControlPlane) Kubeconfig() string { return c.kubeconfig }

// Client is an administrator's client without a rate limit.
func (c *ControlPlane) Client() kubernetes.Interface { return c.client }

// Folder is the directory that holds every file of this run, logs included (NAME.log).
func (c *ControlPlane) Folder() string { return c.supervisor.Folder() }

// file gives the path of a file in the folder.
func (c *ControlPlane) file(name string) string { return filepath.Join(c.Folder(), name) }

// write puts a file that only the owner can read into the folder, and gives its path.
func (c *ControlPlane) write(name string, content []byte) (string, error) {
	path := c.file(name)
	return path, os.WriteFile(path, content, 0o600)
}

// Processes gives the process ids of the components that run, by name.
func (c *ControlPlane) Processes() map[string]int { return c.supervisor.Processes() }

// Failed is closed when a component ended that should run; then Failure says which and why.
func (c *ControlPlane) Failed() <-chan struct{} { return c.supervisor.Failed() }

// Failure is why the control plane does not work any more, or nil.
func (c *ControlPlane) Failure() error { return c.supervisor.Failure() }

// Stop ends every component and removes the folder. It may be called more than once.
func (c *ControlPlane) Stop() error { return c.supervisor.Stop() }
