// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// ignoredFlag is a kube-scheduler flag without effect next to --config, and the configuration field that replaces it.
type ignoredFlag struct {
	Name string
	// Field is the path of the configuration field; otherwise is its default, in the form of the flag's value.
	Field     []string
	otherwise string
}

// ignoredFlags are the deprecated flags of kube-scheduler 1.23.
var ignoredFlags = []ignoredFlag{
	{"profiling", []string{"enableProfiling"}, "true"},
	{"contention-profiling", []string{"enableContentionProfiling"}, "true"},
	{"kubeconfig", []string{"clientConnection", "kubeconfig"}, ""},
	{"kube-api-content-type", []string{"clientConnection", "contentType"}, "application/vnd.kubernetes.protobuf"},
	{"kube-api-qps", []string{"clientConnection", "qps"}, "50"},
	{"kube-api-burst", []string{"clientConnection", "burst"}, "100"},
	{"lock-object-namespace", []string{"leaderElection", "resourceNamespace"}, "kube-system"},
	{"lock-object-name", []string{"leaderElection", "resourceName"}, "kube-scheduler"},
}

// Setting is a flag with the value from a manifest.
type Setting struct {
	ignoredFlag
	value string
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
			found = append(found, Setting{flag, value})
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
