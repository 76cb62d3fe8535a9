// SPDX-License-Identifier: Apache-2.0

package configurations

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kube-scheduler-fork/test/testinput"
)

// root is the project's folder, from this package's; paths in the configurations' comments are relative to it.
const root = "../../.."

// variables are those of a `make run`, by name.
type variables map[string]string

// commandsIn gives the variables of each `make run` in the comment that a configuration begins with. Without any, it is run
// with nothing but its name.
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

// flags gives what scripts/run.sh makes of the variables, and more time.
func (v variables) flags(t *testing.T) []string {
	t.Helper()
	flags := []string{
		"--kube-scheduler=" + testinput.File(t, "KUBE_SCHEDULER"), "--kube-apiserver=" + testinput.File(t, "KUBE_APISERVER"),
		"--etcd=" + testinput.File(t, "ETCD"), "--kwok=" + testinput.File(t, "KWOK"),
		"--default-extender-config=manifests/config/extender-plugins.yaml",
		// A pod for which an extender answered too late is tried again after 60 to 90 s.
		"--timeout=3m",
	}
	if v["EXTENDER"] != "" || strings.Contains(testinput.Read(t, filepath.Join(root, v["CONFIG"])), "extenders") {
		flags = append(flags, "--scheduler-extender="+testinput.File(t, "SCHEDULER_EXTENDER"))
	}
	for name, value := range v {
		switch name {
		case "CONFIG":
			flags = append(flags, "--config="+value)
		case "NODES":
			flags = append(flags, "--nodes="+value)
		case "PODS":
			flags = append(flags, "--pods="+value)
		case "LOG":
			flags = append(flags, "--show-log="+value)
		case "EXTENDER":
			flags = append(flags, "--extender-config="+value)
		case "EXTENDER_PROFILE":
			flags = append(flags, "--extender-profile="+value)
		case "MANIFEST":
			for _, manifest := range strings.Fields(value) {
				flags = append(flags, "--manifest="+manifest)
			}
		default:
			t.Fatalf("the variable %s is none of `make run`", name)
		}
	}
	return flags
}

// build compiles the command that `make run` runs.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kube-scheduler-run")
	output, err := exec.Command("go", "build", "-o", program, "kube-scheduler-fork/build/cmd/kube-scheduler-run").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return program
}

// run does what `make run` does with the variables, and gives what it prints.
func run(t *testing.T, program string, v variables) *outcome {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, v.flags(t)...)
	command.Dir = root
	output, err := command.CombinedOutput()
	t.Logf("%v\n%s", v, output)
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	return parseOutput(string(output))
}
