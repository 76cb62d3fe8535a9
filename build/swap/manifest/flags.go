// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// Setting is a kube-scheduler flag without effect next to --config, and the configuration field that replaces it.
type Setting struct {
	Name string
	// Field is the path of the configuration field; otherwise is its default, in the form of the flag's value.
	Field     []string
	otherwise string
	// value is the flag's value in a manifest.
	value string
}

// ignoredFlags are the deprecated flags of kube-scheduler 1.23.
var ignoredFlags = []Setting{
	{Name: "profiling", Field: []string{"enableProfiling"}, otherwise: "true"},
	{Name: "contention-profiling", Field: []string{"enableContentionProfiling"}, otherwise: "true"},
	{Name: "kubeconfig", Field: []string{"clientConnection", "kubeconfig"}, otherwise: ""},
	{Name: "kube-api-content-type", Field: []string{"clientConnection", "contentType"}, otherwise: "application/vnd.kubernetes.protobuf"},
	{Name: "kube-api-qps", Field: []string{"clientConnection", "qps"}, otherwise: "50"},
	{Name: "kube-api-burst", Field: []string{"clientConnection", "burst"}, otherwise: "100"},
	{Name: "lock-object-namespace", Field: []string{"leaderElection", "resourceNamespace"}, otherwise: "kube-system"},
	{Name: "lock-object-name", Field: []string{"leaderElection", "resourceName"}, otherwise: "kube-scheduler"},
}

// Line returns the configuration line with the same effect.
func (s Setting) Line() string {
	if len(s.Field) == 1 {
		return s.Field[0] + ": " + s.value
	}
	return s.Field[0] + ": {" + s.Field[1] + ": " + s.value + "}"
}

// String returns the flag as in the manifest.
func (s Setting) String() string { return "--" + s.Name + "=" + s.value }

// WithoutEffect returns the flags of a pod that would have no effect with a configuration. A flag whose field is set in
// the configuration is not included: the operator has decided.
func WithoutEffect(pod *Pod, config []byte) ([]Setting, error) {
	tree, err := yaml.Parse(string(config))
	if err != nil {
		return nil, fmt.Errorf("the configuration is not YAML: %w", err)
	}
	var found []Setting
	for _, flag := range ignoredFlags {
		value, set := pod.Flag(flag.Name)
		if is, err := strconv.ParseBool(value); err == nil && flag.otherwise == "true" {
			// 0 and F are false as flags, but not in the configuration.
			value = strconv.FormatBool(is)
		}
		if !set || equalValues(value, flag.otherwise) {
			continue
		}
		field, err := tree.Pipe(yaml.Lookup(flag.Field...))
		if err == nil && field == nil {
			flag.value = value
			found = append(found, flag)
		}
	}
	return found, nil
}

// equalValues reports whether two flag values are equal; 50 and 50.0 are.
func equalValues(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return strings.EqualFold(a, b) || errX == nil && errY == nil && x == y
}

// Adopt writes the flags without effect into a configuration and keeps its comments.
func Adopt(pod *Pod, config []byte) ([]byte, []Setting, error) {
	settings, err := WithoutEffect(pod, config)
	if err != nil || len(settings) == 0 {
		return config, nil, err
	}
	tree, err := yaml.Parse(string(config))
	if err != nil {
		return nil, nil, err
	}
	for _, s := range settings {
		err := tree.PipeE(yaml.LookupCreate(yaml.ScalarNode, s.Field...), yaml.Set(yaml.NewScalarRNode(s.value)))
		if err != nil {
			return nil, nil, nextstep.With(fmt.Errorf("cannot write %s into the configuration: %w", s.Line(), err),
				"write it there by hand, and leave out --adopt-flags")
		}
	}
	text, err := tree.String()
	return []byte(text), settings, err
}
