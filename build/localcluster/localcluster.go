// SPDX-License-Identifier: Apache-2.0

// Package localcluster starts a Kubernetes control plane on loopback, for `make run` and for tests: etcd,
// kube-apiserver, fake nodes (KWOK), and one or more kube-schedulers. It needs neither root nor containers nor a
// network.
//
// All its files are in one directory, and all its processes are children. Stop removes and ends them. After a crash of
// the parent, including kill -9, the kernel ends the children and the next Start removes the directory.
//
// There is no controller manager: nodes, pods and their bindings are all that a scheduler needs.
//
// envtest of sigs.k8s.io/controller-runtime is not used: its etcd accepts requests from every user of the machine, its
// programs outlive a killed parent, and schedulers and KWOK would still need the supervisor.
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

// Options are the programs and settings of a control plane.
type Options struct {
	// Etcd, KubeAPIServer and KWOK are the programs to run.
	Etcd, KubeAPIServer, KWOK string
	// APIServerArguments follow the API server's own, which they override.
	APIServerArguments []string
	// KWOKConfig are further objects for KWOK, as YAML, such as the stages of pods instead of KWOK's own.
	KWOKConfig string
	// Parent is the directory for that of the run; empty is the system's directory for temporary files.
	Parent string
	// Progress receives a line for each start; it may be nil.
	Progress io.Writer
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	supervisor *supervisor.Supervisor
	authority  *Authority
	server     string
	kubeconfig string
	client     kubernetes.Interface
	// apiServer is the process that runs now, and apiServerComponent what was started first.
	apiServer          *supervisor.Process
	apiServerComponent supervisor.Component
	// kwokPort is the port on which KWOK serves the metrics of its nodes.
	kwokPort int
	// environment is that of etcd, the API server and KWOK. It has nothing of the caller's, which may hold ETCD_… or
	// KWOK_… settings, or refer to configuration in the home directory.
	environment []string

	mutex sync.Mutex
	// schedulers are the running ones.
	schedulers []*Scheduler
}

// Start runs etcd, the API server and KWOK, and returns when the API is ready. If it fails, or ctx ends before,
// nothing is left; later ctx is not used. The caller must call Stop.
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

// checkExecutable returns an error for the path of a program that cannot be started.
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

// newControlPlane returns a control plane without running components.
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
	return c.startKWOK(ctx, options.KWOK, options.KWOKConfig)
}

// connect creates the administrator's kubeconfig and client.
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
	// The client's rate limit protects shared API servers, and would distort measurements here.
	config.QPS = -1
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *ControlPlane) Kubeconfig() string { return c.kubeconfig }

// Client returns an administrator's client without a rate limit.
func (c *ControlPlane) Client() kubernetes.Interface { return c.client }

// Folder returns the directory with all files of this run, including logs (NAME.log).
func (c *ControlPlane) Folder() string { return c.supervisor.Folder() }

// file returns the path of a file in the directory.
func (c *ControlPlane) file(name string) string { return filepath.Join(c.Folder(), name) }

// write creates a file in the directory, readable by the owner only, and returns its path.
func (c *ControlPlane) write(name string, content []byte) (string, error) {
	path := c.file(name)
	return path, os.WriteFile(path, content, 0o600)
}

// Processes returns the process ids of the running components by name.
func (c *ControlPlane) Processes() map[string]int { return c.supervisor.Processes() }

// Failed returns a channel that is closed when a component fails; Failure then returns which and why.
func (c *ControlPlane) Failed() <-chan struct{} { return c.supervisor.Failed() }

// Failure returns the reason why the control plane has failed, or nil.
func (c *ControlPlane) Failure() error { return c.supervisor.Failure() }

// Stop ends all components and removes the directory. It may be called more than once.
func (c *ControlPlane) Stop() error { return c.supervisor.Stop() }
