// SPDX-License-Identifier: Apache-2.0

package configurations

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"kube-scheduler-fork/build/localcluster/run"
	"kube-scheduler-fork/test/cluster"
)

var shared cluster.Shared

// Paths in the configurations' comments are relative to the project's root, so the tests run there.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	cluster.Main(m, &shared)
}

// variables are the variables of a `make run`, by name.
type variables map[string]string

// commandsIn returns the variables of each `make run` in the comment at the beginning of a configuration. Without such
// a comment, it returns one run with only the configuration's name.
func commandsIn(file, content string) ([]variables, error) {
	var commands []variables
	for line := range strings.Lines(content) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		command, is := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(line, "#")), "make run ")
		if !is {
			continue
		}
		parsed, err := parseVariables(command)
		if err != nil {
			return nil, fmt.Errorf("%s: make run %s: %w", file, command, err)
		}
		commands = append(commands, parsed)
	}
	if len(commands) == 0 {
		commands = []variables{{"CONFIG": file}}
	}
	return commands, nil
}

// parseVariables reads NAME=value NAME="some values" as a shell does.
func parseVariables(command string) (variables, error) {
	parsed := variables{}
	for rest := strings.TrimSpace(command); rest != ""; rest = strings.TrimSpace(rest) {
		name, value, found := strings.Cut(rest, "=")
		if !found || strings.ContainsAny(name, " \"") {
			return nil, fmt.Errorf("%q is no variable", rest)
		}
		end := " "
		if strings.HasPrefix(value, `"`) {
			value, end = value[1:], `"`
		}
		value, rest, _ = strings.Cut(value, end)
		parsed[name] = value
	}
	return parsed, nil
}

// options returns the options that scripts/run.sh derives from the variables, with a longer timeout.
func (v variables) options(t *testing.T) run.Options {
	t.Helper()
	o := run.Options{
		KubeScheduler: cluster.Program(t, "KUBE_SCHEDULER"), Prometheus: cluster.Program(t, "PROMETHEUS"), Nodes: 5, Pods: 10,
		DefaultExtenderConfig: "manifests/config/extender-plugins.yaml",
		Objects:               []string{cluster.CRDs(t, "."), "manifests/rbac"},
		// A pod whose extender call timed out is retried after 60 to 90 s.
		Timeout: 3 * time.Minute,
	}
	if v["EXTENDER"] != "" || strings.Contains(cluster.Read(t, v["CONFIG"]), "extenders") {
		o.Extender = cluster.Program(t, "SCHEDULER_EXTENDER")
	}
	number := func(value string) int {
		number, err := strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	for name, value := range v {
		switch name {
		case "CONFIG":
			o.Config = value
		case "NODES":
			o.Nodes = number(value)
		case "PODS":
			o.Pods = number(value)
		case "LOG":
			o.ShowLog = value
		case "EXTENDER":
			o.ExtenderConfig = value
		case "EXTENDER_PROFILE":
			o.ExtenderProfile = value
		case "MANIFEST":
			o.Manifests = strings.Fields(value)
		default:
			t.Fatalf("the variable %s is none of `make run`", name)
		}
	}
	return o
}

// runWith runs `make run` with the variables on the shared control plane, and returns its output.
func runWith(t *testing.T, v variables) *outcome {
	t.Helper()
	var output strings.Builder
	options := v.options(t)
	options.Out = &output
	err := options.On(t.Context(), shared.Get(t).ControlPlane)
	t.Logf("%v\n%s", v, output.String())
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	return parseOutput(output.String())
}
