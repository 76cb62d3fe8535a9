package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// nextScheduler is what to do when there is no scheduler to run.
const nextScheduler = "build it in the patched tree with: make all WHAT=cmd/kube-scheduler"

// Scheduler is a kube-scheduler that runs against a control plane.
type Scheduler struct {
	plane    *ControlPlane
	process  *process
	url      string
	profiles []string
}

// schedulerOptions are what can be different about a scheduler.
type schedulerOptions struct {
	token          string
	leaderElection bool
}

// SchedulerOption changes how a scheduler is started.
type SchedulerOption func(*schedulerOptions)

// WithToken makes the scheduler speak to the API server as whom the token belongs to: all of it, the questions that it has
// about its own callers too. Without, it is system:kube-scheduler.
func WithToken(token string) SchedulerOption {
	return func(options *schedulerOptions) { options.token = token }
}

// WithLeaderElection leaves leader election to the configuration instead of switching it off.
func WithLeaderElection() SchedulerOption {
	return func(options *schedulerOptions) { options.leaderElection = true }
}

// ReadProfiles gives the scheduler names of the profiles in a KubeSchedulerConfiguration.
func ReadProfiles(configFile string) ([]string, error) {
	config, err := readSchedulerConfig(configFile)
	if err != nil {
		return nil, err
	}
	return config.profiles()
}

// StartScheduler starts a kube-scheduler with a configuration and waits until it is healthy. The file is not changed:
// the scheduler reads a copy in which the API server is this one and leader election is off, unless an option says
// otherwise. There can be one at a time.
func (c *ControlPlane) StartScheduler(
	ctx context.Context, executable, configFile string, options ...SchedulerOption,
) (*Scheduler, error) {
	var chosen schedulerOptions
	for _, option := range options {
		option(&chosen)
	}
	if err := checkExecutable("kube-scheduler", executable, nextScheduler); err != nil {
		return nil, err
	}
	if _, running := c.Processes()["kube-scheduler"]; running {
		return nil, errors.New("a kube-scheduler runs already: two would bind the same pods; next: stop the first")
	}
	config, err := readSchedulerConfig(configFile)
	if err != nil {
		return nil, err
	}
	profiles, err := config.profiles()
	if err != nil {
		return nil, err
	}
	const kubeconfigFile = "scheduler.kubeconfig"
	var kubeconfig string
	if chosen.token != "" {
		kubeconfig, err = c.writeTokenKubeconfig(kubeconfigFile, chosen.token)
	} else {
		kubeconfig, err = c.writeKubeconfig(kubeconfigFile, "system:kube-scheduler")
	}
	if err != nil {
		return nil, err
	}
	localConfig := c.folder.file("scheduler.yaml")
	if err := config.writeLocalCopy(localConfig, kubeconfig, chosen.leaderElection); err != nil {
		return nil, err
	}
	certificate, key, err := c.writeServerPair("kube-scheduler")
	if err != nil {
		return nil, err
	}
	// Unlike the others it gets the caller's environment and working directory: the configuration is the caller's, and may
	// name files relative to it or depend on a proxy.
	p, port, err := c.launch(ctx, component{
		name:       "kube-scheduler",
		executable: executable,
		listens:    true,
		ready:      "/healthz",
		next:       fmt.Sprintf("correct %s as the last lines say, and run again", configFile),
		args: func(port int) []string {
			return []string{
				"--config=" + localConfig,
				"--bind-address=" + loopback,
				"--secure-port=" + strconv.Itoa(port),
				"--tls-cert-file=" + certificate,
				"--tls-private-key-file=" + key,
				// As kubeadm has it: who may read the metrics is for the API server to say.
				"--authentication-kubeconfig=" + kubeconfig,
				"--authorization-kubeconfig=" + kubeconfig,
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return &Scheduler{plane: c, process: p, url: "https://" + net.JoinHostPort(loopback, strconv.Itoa(port)), profiles: profiles}, nil
}

// URL is where it serves its metrics and its health, with a certificate of the authority that Kubeconfig names.
func (s *Scheduler) URL() string { return s.url }

// Profiles gives the scheduler names of its profiles, in the order of the configuration.
func (s *Scheduler) Profiles() []string { return slices.Clone(s.profiles) }

// Serves tells whether one of its profiles is responsible for a pod.
func (s *Scheduler) Serves(pod *corev1.Pod) bool {
	return slices.Contains(s.profiles, schedulerName(pod))
}

// schedulerName is the name of the scheduler that a pod asks for.
func schedulerName(pod *corev1.Pod) string {
	if pod.Spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return pod.Spec.SchedulerName
}

// Stop ends the scheduler; the control plane goes on.
func (s *Scheduler) Stop() error { return s.plane.end(s.process) }
