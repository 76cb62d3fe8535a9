// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

// nextScheduler is the next step when there is no scheduler to run.
const nextScheduler = "build it in the patched tree with: make all WHAT=cmd/kube-scheduler"

// nextPanic is the next step after a panic of a program with plugins.
const nextPanic = "fix the plugin that is named above, and run again"

// Scheduler is a kube-scheduler of a control plane.
type Scheduler struct {
	plane    *ControlPlane
	name     string
	profiles []string
	process  *supervisor.Process
	url      string
}

// SchedulerOptions change how a scheduler is started.
type SchedulerOptions struct {
	// Name distinguishes a scheduler from others on the same control plane: among the Processes, and in the names of its
	// files, NAME.log first. Empty is kube-scheduler.
	Name string
	// Token authenticates the scheduler to the API server, also for reviews of its own callers. Without one, the scheduler
	// is system:kube-scheduler.
	Token string
	// LeaderElection leaves leader election to the configuration instead of switching it off. Schedulers that all have it
	// may have the same profiles: only one of them at a time binds pods.
	LeaderElection bool
	// Flags follow the scheduler's other flags.
	Flags []string
	// Extender is called instead of the extenders on loopback in the configuration; if Replaces is an address,
	// https://host:port, instead of those at that address.
	Extender *Extender
	Replaces string
}

// ReadProfiles returns the scheduler names of the profiles in a KubeSchedulerConfiguration.
func ReadProfiles(configFile string) ([]string, error) {
	config, err := readSchedulerConfig(configFile)
	if err != nil {
		return nil, err
	}
	return config.profiles()
}

// StartScheduler starts a kube-scheduler with a configuration and waits until it is healthy and sees the nodes. The
// file is not changed: the scheduler reads a copy in which the API server is this one and leader election is off,
// unless the options leave it on. There can be several at a time, each with its own name, and with its own profiles
// unless they elect a leader.
func (c *ControlPlane) StartScheduler(
	ctx context.Context, executable, configFile string, options SchedulerOptions,
) (*Scheduler, error) {
	options.Name = cmp.Or(options.Name, "kube-scheduler")
	if err := checkExecutable(options.Name, executable, nextScheduler); err != nil {
		return nil, err
	}
	config, err := readSchedulerConfig(configFile)
	if err != nil {
		return nil, err
	}
	profiles, err := config.profiles()
	if err != nil {
		return nil, err
	}
	scheduler := &Scheduler{plane: c, name: options.Name, profiles: profiles}
	if err := scheduler.start(ctx, executable, config, options); err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.schedulers = append(c.schedulers, scheduler)
	return scheduler, nil
}

// strike removes a scheduler from the list.
func (c *ControlPlane) strike(scheduler *Scheduler) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.schedulers = slices.DeleteFunc(c.schedulers, func(other *Scheduler) bool { return other == scheduler })
}

// profiles returns the scheduler names of all profiles that run.
func (c *ControlPlane) profiles() sets.String {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	names := sets.NewString()
	for _, scheduler := range c.schedulers {
		names.Insert(scheduler.profiles...)
	}
	return names
}

func (s *Scheduler) start(ctx context.Context, executable string, config *schedulerConfig, options SchedulerOptions) error {
	c := s.plane
	kubeconfigFile := s.name + ".kubeconfig"
	var kubeconfig string
	var err error
	if options.Token != "" {
		kubeconfig, err = c.writeTokenKubeconfig(kubeconfigFile, options.Token)
	} else {
		kubeconfig, err = c.writeKubeconfig(kubeconfigFile, "system:kube-scheduler")
	}
	if err != nil {
		return err
	}
	localConfig := c.file(s.name + ".yaml")
	settings := localSettings{kubeconfig, options.LeaderElection, options.Extender, options.Replaces}
	if err := config.writeLocalCopy(localConfig, settings); err != nil {
		return err
	}
	certificate, key, err := c.writeServerPair(s.name)
	if err != nil {
		return err
	}
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	// Unlike the others it gets the caller's environment and working directory: the configuration is the caller's, and
	// may name files relative to it or depend on a proxy.
	p, port, err := c.supervisor.Start(ctx, supervisor.Component{
		Name:       s.name,
		Executable: executable,
		Listens:    true,
		Ready:      "/healthz",
		Also: func(get func(string) ([]byte, error)) error {
			metrics, err := get("/metrics")
			if err != nil {
				return err
			}
			return seesNodes(metrics, len(nodes.Items))
		},
		Next:      fmt.Sprintf("fix what the last lines report in %s, and run again", config.file),
		NextPanic: nextPanic,
		Arguments: func(port int) []string {
			return append([]string{
				"--config=" + localConfig,
				"--bind-address=" + supervisor.Loopback,
				"--secure-port=" + strconv.Itoa(port),
				"--tls-cert-file=" + certificate,
				"--tls-private-key-file=" + key,
				// As in kubeadm's manifest: the API server decides who may read the metrics.
				"--authentication-kubeconfig=" + kubeconfig,
				"--authorization-kubeconfig=" + kubeconfig,
			}, options.Flags...)
		},
	})
	if err != nil {
		return err
	}
	s.process, s.url = p, "https://"+net.JoinHostPort(supervisor.Loopback, strconv.Itoa(port))
	return nil
}

// seesNodes returns an error until a scheduler's cache has as many nodes, according to its metrics, which it updates once
// a second. The scheduler is healthy before that, and would find no node for a pod. A node that it knows only from its pods
// counts, too.
func seesNodes(metrics []byte, nodes int) error {
	cached := 0.
	for line := range strings.Lines(string(metrics)) {
		if value, is := strings.CutPrefix(line, `scheduler_scheduler_cache_size{type="nodes"} `); is {
			var err error
			if cached, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil {
				return err
			}
		}
	}
	if cached < float64(nodes) {
		return fmt.Errorf("the scheduler's cache has %v of %d nodes", cached, nodes)
	}
	return nil
}

// URL returns the address of its metrics and its health, with a certificate of the authority that Kubeconfig names.
func (s *Scheduler) URL() string { return s.url }

// Get returns a page of the scheduler, with an administrator's rights.
func (s *Scheduler) Get(ctx context.Context, path string) ([]byte, error) {
	return s.plane.supervisor.Get(ctx, s.url+path)
}

// LogFile returns the path of its log, which is removed with the control plane's directory.
func (s *Scheduler) LogFile() string { return s.process.LogFile() }

// Profiles returns the scheduler names of its profiles, in the order of the configuration.
func (s *Scheduler) Profiles() []string { return slices.Clone(s.profiles) }

// schedulerName returns the name of the scheduler that a pod asks for.
func schedulerName(pod *corev1.Pod) string {
	if pod.Spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return pod.Spec.SchedulerName
}

// Stop ends the scheduler; the control plane keeps running.
func (s *Scheduler) Stop() error {
	defer s.plane.strike(s)
	return s.plane.supervisor.End(s.process)
}

// Kill ends the scheduler with SIGKILL, as a crash would; the control plane keeps running.
func (s *Scheduler) Kill() error {
	defer s.plane.strike(s)
	return s.plane.supervisor.Kill(s.process)
}
