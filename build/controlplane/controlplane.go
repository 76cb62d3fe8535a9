// Package controlplane starts a Kubernetes control plane on loopback, for `make run` and for tests: etcd, kube-apiserver,
// fake nodes (KWOK), and one or more kube-schedulers. It needs neither root nor containers nor a network.
//
// Everything it writes is in one folder, and everything it starts is a child process. Stop ends both; after a crash
// of the parent, kill -9 included, the kernel ends the children and the next Start removes the folder.
//
// There is no controller manager: nodes, pods and their bindings are all that a scheduler needs.
package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say what a control plane is made of.
type Options struct {
	// Etcd, KubeAPIServer and KWOK are the programs to run.
	Etcd, KubeAPIServer, KWOK string
	// APIServerArguments follow the API server's own; of a flag that is there twice, the last one counts.
	APIServerArguments []string
	// Parent is the directory in which the folder of the run is made; empty is the system's directory for temporary files.
	Parent string
	// Progress receives a line for each thing that starts or ends; nil is nobody.
	Progress io.Writer
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	folder     *folder
	forker     *forker
	progress   io.Writer
	authority  *authority
	server     string
	kubeconfig string
	client     kubernetes.Interface
	// probe asks components whether they are ready.
	probe *http.Client
	// pickPort is freePort, but in tests.
	pickPort func() (int, error)
	// environment is what etcd, the API server and KWOK get: nothing of the caller's, which may hold ETCD_… or KWOK_…
	// settings, or point to configuration in the home directory.
	environment []string

	// alive ends when a component ended that should run; the cause is its Failure.
	alive context.Context
	fail  context.CancelCauseFunc

	mutex sync.Mutex
	// running are the components in the order in which they were started.
	running []*process
	// schedulers are those among them that are schedulers, and those that are being started.
	schedulers []*Scheduler
	nodes      int

	stopped sync.Once
	stopErr error
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

// newControlPlane makes a control plane in which nothing runs yet.
func newControlPlane(options Options) (*ControlPlane, error) {
	parent, err := filepath.Abs(options.Parent)
	if options.Parent == "" {
		parent, err = filepath.Abs(os.TempDir())
	}
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{progress: options.Progress, pickPort: freePort}
	removed, err := RemoveLeftFolders(parent)
	for _, path := range removed {
		c.report("removed %s, left by a run that crashed", path)
	}
	if err != nil {
		// Not a reason to stop: the folders of two runs have nothing in common.
		c.report("%v", err)
	}
	if c.authority, err = newAuthority(); err != nil {
		return nil, err
	}
	if c.folder, err = newFolder(parent); err != nil {
		return nil, err
	}
	c.environment = []string{"HOME=" + c.folder.path, "TMPDIR=" + c.folder.path}
	c.forker = newForker()
	c.alive, c.fail = context.WithCancelCause(context.Background())
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, options Options) error {
	if err := c.prepareClients(); err != nil {
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

// prepareClients writes the certificates that more than one component needs.
func (c *ControlPlane) prepareClients() error {
	if _, err := c.folder.write(authorityFile, c.authority.pem); err != nil {
		return err
	}
	pair, err := c.authority.client(adminUser, adminGroup)
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(pair.certificate, pair.key)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.authority.certificate)
	c.probe = &http.Client{Timeout: probeDeadline, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
		// Each component is asked only until it answers; there is nothing to keep a connection for.
		DisableKeepAlives: true,
	}}
	return nil
}

// connect makes the administrator's kubeconfig and the client for the API server.
func (c *ControlPlane) connect(port int) error {
	c.server = "https://" + net.JoinHostPort(loopback, fmt.Sprint(port))
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
func (c *ControlPlane) Folder() string { return c.folder.path }

// Processes gives the process ids of the components that run, by name.
func (c *ControlPlane) Processes() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	processes := map[string]int{}
	for _, p := range c.running {
		processes[p.name] = p.pid()
	}
	return processes
}

// Failed is closed when a component ended that should run; then Failure says which and why.
func (c *ControlPlane) Failed() <-chan struct{} { return c.alive.Done() }

// Failure is why the control plane does not work any more, or nil.
func (c *ControlPlane) Failure() error { return context.Cause(c.alive) }

// Stop ends every component and removes the folder. It may be called more than once.
func (c *ControlPlane) Stop() error {
	c.stopped.Do(func() {
		c.mutex.Lock()
		ending := c.running
		c.running = nil
		c.mutex.Unlock()
		failures := make([]error, len(ending))
		// All at once: with the data thrown away there is no order to keep, and each may use up its grace period.
		var group sync.WaitGroup
		for i, p := range ending {
			group.Go(func() { failures[i] = p.stop(stopGrace) })
		}
		group.Wait()
		c.forker.close()
		c.stopErr = errors.Join(append(failures, c.folder.remove())...)
	})
	return c.stopErr
}

// end takes a component off the list, so that its end is no failure, and ends it.
func (c *ControlPlane) end(p *process) error {
	c.disown(p)
	return p.stop(stopGrace)
}

// adopt makes a component part of the control plane: from now on its end is a failure of the whole.
func (c *ControlPlane) adopt(component component, p *process) {
	c.mutex.Lock()
	c.running = append(c.running, p)
	c.mutex.Unlock()
	go func() {
		<-p.exited
		if c.disown(p) {
			c.fail(failureOf(component, p.logFile, p.ending()))
		}
	}()
}

// disown takes a component off the list, and tells whether it was on it.
func (c *ControlPlane) disown(p *process) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for i, other := range c.running {
		if other == p {
			c.running = append(c.running[:i], c.running[i+1:]...)
			return true
		}
	}
	return false
}

// whileAlive derives a context that also ends when a component ends; its cause is that Failure.
func (c *ControlPlane) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.alive, func() { cancel(context.Cause(c.alive)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// report writes a line of progress.
func (c *ControlPlane) report(format string, arguments ...any) {
	if c.progress != nil {
		fmt.Fprintf(c.progress, format+"\n", arguments...)
	}
}
