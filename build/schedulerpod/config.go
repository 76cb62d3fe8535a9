// SPDX-License-Identifier: Apache-2.0

package schedulerpod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Config is the part of a KubeSchedulerConfiguration that says how a scheduler runs; v1beta2 and v1beta3 agree in it.
type Config struct {
	metav1.TypeMeta  `json:",inline"`
	ClientConnection struct {
		Kubeconfig string  `json:"kubeconfig"`
		QPS        float64 `json:"qps"`
	} `json:"clientConnection"`
	LeaderElection struct {
		LeaderElect       *bool  `json:"leaderElect"`
		ResourceName      string `json:"resourceName"`
		ResourceNamespace string `json:"resourceNamespace"`
	} `json:"leaderElection"`
	Profiles []struct {
		SchedulerName string `json:"schedulerName"`
		// Plugins are those of each extension point.
		Plugins map[string]struct {
			Enabled []struct {
				Name string `json:"name"`
			} `json:"enabled"`
		} `json:"plugins"`
	} `json:"profiles"`
}

// ReadConfig decodes a configuration.
func ReadConfig(content []byte) (*Config, error) {
	config := &Config{}
	if err := yaml.Unmarshal(content, config); err != nil {
		return nil, err
	}
	return config, nil
}

// SchedulerNames returns the names of the profiles; a configuration without profiles has the default one.
func (c *Config) SchedulerNames() []string {
	if len(c.Profiles) == 0 {
		return []string{corev1.DefaultSchedulerName}
	}
	var names []string
	for _, profile := range c.Profiles {
		if profile.SchedulerName == "" {
			profile.SchedulerName = corev1.DefaultSchedulerName
		}
		names = append(names, profile.SchedulerName)
	}
	return names
}

// ProfilesWith returns the names of the profiles that enable a plugin at any extension point.
func (c *Config) ProfilesWith(plugin string) []string {
	var found []string
	names := c.SchedulerNames()
	for i, profile := range c.Profiles {
		for _, point := range profile.Plugins {
			for _, enabled := range point.Enabled {
				if enabled.Name == plugin {
					found = append(found, names[i])
				}
			}
		}
	}
	return found
}

// Lease names the object by which schedulers elect their leader.
type Lease struct{ Namespace, Name string }

// DefaultLease is the lease of kubeadm's scheduler.
var DefaultLease = Lease{metav1.NamespaceSystem, "kube-scheduler"}

func (l Lease) String() string { return l.Namespace + "/" + l.Name }

// ConfigFile returns the value of --config; empty if the scheduler has no configuration.
func (s Scheduler) ConfigFile() string {
	file, _ := s.Flag("config")
	return file
}

// Lease returns the lease by which the scheduler is elected; nil without leader election. config is its configuration;
// nil without one. Flags override it, as in kube-scheduler; the two of older releases only count without --config.
func (s Scheduler) Lease(config *Config) *Lease {
	found, elect := DefaultLease, true
	if config != nil {
		election := config.LeaderElection
		if election.LeaderElect != nil {
			elect = *election.LeaderElect
		}
		set(&found.Name, election.ResourceName, election.ResourceName != "")
		set(&found.Namespace, election.ResourceNamespace, election.ResourceNamespace != "")
	}
	override := func(field *string, flag string) {
		value, given := s.Flag(flag)
		set(field, value, given)
	}
	if s.ConfigFile() == "" {
		override(&found.Name, "lock-object-name")
		override(&found.Namespace, "lock-object-namespace")
	}
	override(&found.Name, "leader-elect-resource-name")
	override(&found.Namespace, "leader-elect-resource-namespace")
	if value, given := s.Flag("leader-elect"); given {
		elect = value != "false"
	}
	if !elect {
		return nil
	}
	return &found
}

func set(field *string, value string, given bool) {
	if given {
		*field = value
	}
}
