package controlplane

import (
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// configGroup is the API group of scheduler configurations.
const configGroup = "kubescheduler.config.k8s.io/"

// schedulerConfig is a KubeSchedulerConfiguration as a file has it. What is in it is for the scheduler to judge, which
// knows the versions, defaults and plugin arguments; only what a local run needs is read and set here.
type schedulerConfig struct {
	file    string
	content *unstructured.Unstructured
}

// readSchedulerConfig reads a KubeSchedulerConfiguration in YAML or JSON.
func readSchedulerConfig(file string) (*schedulerConfig, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the scheduler's configuration: %w; next: give a file that exists with --config", err)
	}
	// Strict: of a key that is there twice, one would be lost without a word.
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

// profiles gives the scheduler names of the profiles, in the file's order, with the scheduler's own default for one
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

// writeLocalCopy writes the configuration to another file, the same but for two fields: where the API server is, and that
// there is no other scheduler to elect a leader from. The second is left alone for leader election.
func (s *schedulerConfig) writeLocalCopy(file, kubeconfig string, leaderElection bool) error {
	local := s.content.DeepCopy()
	type field struct {
		value any
		path  []string
	}
	fields := []field{{kubeconfig, []string{"clientConnection", "kubeconfig"}}}
	if !leaderElection {
		fields = append(fields, field{false, []string{"leaderElection", "leaderElect"}})
	}
	for _, field := range fields {
		// A key with nothing behind it is null in YAML, and as good as absent.
		if local.Object[field.path[0]] == nil {
			delete(local.Object, field.path[0])
		}
		if err := unstructured.SetNestedField(local.Object, field.value, field.path...); err != nil {
			return fmt.Errorf("%s: %s: %w; next: correct it", s.file, field.path[0], err)
		}
	}
	content, err := yaml.Marshal(local.Object)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}
