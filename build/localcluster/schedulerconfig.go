// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// configGroup is the API group of scheduler configurations.
const configGroup = "kubescheduler.config.k8s.io/"

// schedulerConfig is a KubeSchedulerConfiguration of a file. The scheduler validates it, because it knows the versions,
// defaults and plugin arguments; only what a local run needs is read and set here.
type schedulerConfig struct {
	file    string
	content *unstructured.Unstructured
}

// readSchedulerConfig reads a KubeSchedulerConfiguration in YAML or JSON.
func readSchedulerConfig(file string) (*schedulerConfig, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the scheduler's configuration: %w; "+
			"next: give a file that exists with CONFIG", err)
	}
	// Strict: one of two equal keys would silently be lost.
	json, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, fmt.Errorf("%s is not YAML: %w; next: correct it", file, err)
	}
	config := &schedulerConfig{file: file, content: &unstructured.Unstructured{}}
	if err := config.content.UnmarshalJSON(json); err != nil {
		return nil, config.wrong(err.Error())
	}
	kind, version := config.content.GetKind(), config.content.GetAPIVersion()
	if kind != "KubeSchedulerConfiguration" || !strings.HasPrefix(version, configGroup) {
		return nil, config.wrong(fmt.Sprintf("it is a %s of %s", kind, version))
	}
	return config, nil
}

func (s *schedulerConfig) wrong(why string) error {
	return fmt.Errorf("%s is not a scheduler configuration: %s; next: start it with\n"+
		"apiVersion: %sv1beta3\nkind: KubeSchedulerConfiguration", s.file, why, configGroup)
}

// profiles returns the scheduler names of the profiles, in the file's order, with the scheduler's own default for one
// without a name.
func (s *schedulerConfig) profiles() ([]string, error) {
	profiles, _, err := unstructured.NestedSlice(s.content.Object, "profiles")
	if err != nil && s.content.Object["profiles"] != nil {
		return nil, fmt.Errorf("%s: profiles: %w; next: correct it", s.file, err)
	}
	if len(profiles) == 0 {
		return []string{corev1.DefaultSchedulerName}, nil
	}
	var names []string
	for i, profile := range profiles {
		fields, ok := profile.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: profiles[%d] is not a map; next: correct it", s.file, i)
		}
		name, _, err := unstructured.NestedString(fields, "schedulerName")
		if err != nil && fields["schedulerName"] != nil {
			return nil, fmt.Errorf("%s: profiles[%d]: %w; next: correct it", s.file, i, err)
		}
		if name == "" {
			name = corev1.DefaultSchedulerName
		}
		names = append(names, name)
	}
	return names, nil
}

// localSettings are the fields that a run sets in its copy of a configuration.
type localSettings struct {
	// kubeconfig is the path of the file for the API server.
	kubeconfig string
	// leaderElection leaves leader election as it is; otherwise it is switched off, because there is one scheduler.
	leaderElection bool
	// extender replaces extenders on loopback; nil replaces none.
	extender *Extender
	// replaces is the address, https://host:port, of the extenders that it replaces; empty means all on loopback.
	replaces string
}

// writeLocalCopy writes the configuration with the local settings to another file.
func (s *schedulerConfig) writeLocalCopy(file string, settings localSettings) error {
	local := s.content.DeepCopy()
	type field struct {
		value any
		path  []string
	}
	fields := []field{{settings.kubeconfig, []string{"clientConnection", "kubeconfig"}}}
	if !settings.leaderElection {
		fields = append(fields, field{false, []string{"leaderElection", "leaderElect"}})
	}
	for _, field := range fields {
		// A key without a value is null in YAML, like an absent one.
		if local.Object[field.path[0]] == nil {
			delete(local.Object, field.path[0])
		}
		if err := unstructured.SetNestedField(local.Object, field.value, field.path...); err != nil {
			return fmt.Errorf("%s: %s: %w; next: correct it", s.file, field.path[0], err)
		}
	}
	if settings.extender != nil {
		extenders := localExtenders(local.Object, settings.replaces)
		if len(extenders) == 0 {
			return fmt.Errorf("%s names no extender on loopback, so the scheduler would not call the one that runs; "+
				"next: add one to its extenders, with urlPrefix: %s, or start none", s.file, DocumentedExtender)
		}
		for _, extender := range extenders {
			settings.extender.redirect(extender)
		}
	}
	content, err := yaml.Marshal(local.Object)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// localExtenders returns the extenders of a configuration whose address is on loopback, or only those at one address,
// https://host:port.
func localExtenders(config map[string]any, only string) []map[string]any {
	extenders, _ := config["extenders"].([]any)
	var local []map[string]any
	for _, entry := range extenders {
		fields, _ := entry.(map[string]any)
		prefix, _ := fields["urlPrefix"].(string)
		address, err := url.Parse(prefix)
		if err != nil || !isLoopback(address.Hostname()) {
			continue
		}
		if only == "" || address.Scheme+"://"+address.Host == only {
			local = append(local, fields)
		}
	}
	return local
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }
