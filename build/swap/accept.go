// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/staticpod"
)

// schedulerConfig is what this tool needs of a KubeSchedulerConfiguration; v1beta2 and v1beta3 agree in it.
type schedulerConfig struct {
	metav1.TypeMeta  `json:",inline"`
	ClientConnection struct {
		Kubeconfig string `json:"kubeconfig"`
	} `json:"clientConnection"`
	LeaderElection struct {
		LeaderElect       *bool  `json:"leaderElect"`
		ResourceName      string `json:"resourceName"`
		ResourceNamespace string `json:"resourceNamespace"`
	} `json:"leaderElection"`
	Profiles []struct {
		SchedulerName string `json:"schedulerName"`
	} `json:"profiles"`
}

// profiles are the names of the profiles; a configuration without any has the default one.
func (c *schedulerConfig) profiles() []string {
	if len(c.Profiles) == 0 {
		return []string{defaultScheduler}
	}
	var names []string
	for _, profile := range c.Profiles {
		if profile.SchedulerName == "" {
			profile.SchedulerName = defaultScheduler
		}
		names = append(names, profile.SchedulerName)
	}
	return names
}

func readConfig(content []byte) (*schedulerConfig, error) {
	config := &schedulerConfig{}
	if err := yaml.Unmarshal(content, config); err != nil {
		return nil, err
	}
	return config, nil
}

// acceptTime is how long a scheduler may take to say whether it accepts a configuration; it takes a tenth of a second.
const acceptTime = 30 * time.Second

// accepts asks a scheduler itself whether it would start with the command line and the environment of a pod: it reads
// the configuration, makes every profile with its plugins, writes the configuration with all defaults and ends, without
// asking the API server. translate gives the place on this host of a file that the pod names. The answer is what the
// scheduler made of the configuration.
func accepts(ctx context.Context, binary string, pod *staticpod.Pod, translate func(string) string) (*schedulerConfig, error) {
	folder, err := os.MkdirTemp(filepath.Dir(binary), "accept-")
	if err != nil {
		return nil, fmt.Errorf("%w; next: see that there is room in %s", err, filepath.Dir(binary))
	}
	defer os.RemoveAll(folder)
	written := filepath.Join(folder, "written.yaml")

	arguments := translated(pod.Command[1:], translate)
	// Its port is in use by the scheduler that runs.
	arguments = append(arguments, "--secure-port=0", "--write-config-to="+written)
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	command := exec.CommandContext(ctx, binary, arguments...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	command.Dir = folder
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, variable := range pod.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	err = command.Run()
	content, readError := os.ReadFile(written)
	if err == nil && readError == nil {
		return readConfig(content)
	}
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("it cannot be run from %s: %w (mounted noexec?)", filepath.Dir(binary), err)
	}
	if err == nil {
		err = errors.New("it wrote no configuration")
	}
	return nil, fmt.Errorf("%w: %s", err, lastLines(output.String(), 6))
}

// translated replaces the paths in a command line, --name=/path and --name /path, by those on this host.
func translated(arguments []string, translate func(string) string) []string {
	var result []string
	for _, argument := range arguments {
		if name, value, both := strings.Cut(argument, "="); both && strings.HasPrefix(value, "/") {
			argument = name + "=" + translate(value)
		} else if strings.HasPrefix(argument, "/") {
			argument = translate(argument)
		}
		result = append(result, argument)
	}
	return result
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n    ")
}

// leaseOf is the lease by which the scheduler of a pod is elected; nil without leader election. config is what its
// configuration says; nil without one. Flags go before it: the scheduler's own rule.
func leaseOf(pod *staticpod.Pod, config *schedulerConfig) *lease {
	found := lease{namespace: "kube-system", name: "kube-scheduler"}
	elect := true
	if config != nil {
		if config.LeaderElection.LeaderElect != nil {
			elect = *config.LeaderElection.LeaderElect
		}
		if config.LeaderElection.ResourceName != "" {
			found.name = config.LeaderElection.ResourceName
		}
		if config.LeaderElection.ResourceNamespace != "" {
			found.namespace = config.LeaderElection.ResourceNamespace
		}
	}
	if value, set := pod.Flag("leader-elect"); set {
		elect = value != "false"
	}
	if value, set := pod.Flag("leader-elect-resource-name"); set {
		found.name = value
	}
	if value, set := pod.Flag("leader-elect-resource-namespace"); set {
		found.namespace = value
	}
	if !elect {
		return nil
	}
	return &found
}

// configOf reads the configuration that a pod's command line names, where it lies on this host; nil if it names none.
func configOf(pod *staticpod.Pod) (*schedulerConfig, error) {
	inside, set := pod.Flag("config")
	if !set || inside == "" {
		return nil, nil
	}
	path, mounted := pod.HostPath(inside)
	if !mounted {
		return nil, fmt.Errorf("the manifest names --config=%s, and mounts no folder that holds it; next: kube-scheduler-swap rollback", inside)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the scheduler's configuration: %w; next: kube-scheduler-swap install --config FILE", err)
	}
	config, err := readConfig(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; next: mend it, and kube-scheduler-swap install --config FILE", path, err)
	}
	return config, nil
}
