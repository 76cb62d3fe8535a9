// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestValidateConfig runs the command with --validate-config and out-of-tree plugins.
func TestValidateConfig(t *testing.T) {
	const head = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
	refused := WithPlugin("Refused", func(apiruntime.Object, framework.Handle) (framework.Plugin, error) { return nil, errors.New("no") })
	tests := []struct {
		name    string
		config  string
		flags   []string
		options []Option
		// wantOut and wantErrors are all printed lines, in any order.
		wantOut, wantErrors []string
	}{
		{
			name:   "the default configuration, without kubeconfig",
			config: head,
			wantOut: []string{
				"FILE is valid (kubescheduler.config.k8s.io/v1beta3)",
				"profile default-scheduler: the default plugins",
				"note: clientConnection.kubeconfig is not set: the scheduler finds the API server only if it runs in a pod of the cluster " +
					"that has a service account's token, or with --master",
			},
		},
		{
			name:   "the default configuration, with the API server's address in a flag",
			config: head,
			flags:  []string{"--master=https://127.0.0.1:6443"},
			wantOut: []string{
				"FILE is valid (kubescheduler.config.k8s.io/v1beta3)",
				"profile default-scheduler: the default plugins",
			},
		},
		{
			name:       "a flag, a field and a value",
			config:     head + "paralelism: 1\npodInitialBackoffSeconds: -1\n",
			flags:      []string{"--secure-port=-1"},
			wantErrors: []string{"--secure-port -1 must be between", "paralelism: unknown field", "podInitialBackoffSeconds: Invalid value: -1"},
		},
		{
			name: "a version of another release, a field, a value and a plugin",
			config: strings.Replace(head, "v1beta3", "v1", 1) + "paralelism: 1\npercentageOfNodesToScore: 101\n" +
				"profiles: [{plugins: {score: {enabled: [{name: TargetLoadPacking}, {name: Refused}]}}}]\n",
			options: []Option{refused},
			wantErrors: []string{
				`apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1": Kubernetes 1.23 does not read this version: ` +
					"write apiVersion: kubescheduler.config.k8s.io/v1beta3 in line 1",
				"paralelism: unknown field", "percentageOfNodesToScore: Invalid value: 101",
				"profiles[0].plugins.score.enabled[TargetLoadPacking]: this scheduler has no plugin of that name; use NodeLoad",
			},
		},
		{
			name: "a plugin without an extension point that it needs",
			config: strings.Replace(head, "v1beta3", "v1beta2", 1) +
				"profiles: [{plugins: {preFilter: {enabled: [{name: Coscheduling}]}, reserve: {enabled: [{name: Coscheduling}]}}}]\n",
			wantErrors: []string{"profiles[0].plugins.filter.enabled: Required value: {name: Coscheduling}: it is enabled at other points"},
		},
		{
			name:       "leader election flags override the file",
			config:     head,
			flags:      []string{"--leader-elect-resource-lock=files"},
			wantErrors: []string{"leaderElection: Invalid lock-type files"},
		},
		{
			name:       "an out-of-tree plugin",
			config:     head + "profiles: [{plugins: {multiPoint: {enabled: [{name: Refused}]}}}]\n",
			options:    []Option{refused},
			wantErrors: []string{"profiles[0]: plugin Refused: no"},
		},
		{
			name:       "an out-of-tree option that fails",
			config:     head,
			options:    []Option{refused, refused},
			wantErrors: []string{"a plugin named Refused already exists"},
		},
		{
			name:       "a file to write",
			config:     head,
			flags:      []string{"--write-config-to=/no/such/folder/file"},
			wantErrors: []string{"--write-config-to: nothing is written"},
		},
		{
			name:       "a field that a feature gate forbids",
			config:     head + "profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 0}]}}]}]\n",
			wantErrors: []string{"profiles[0].pluginConfig[0].args.shape: Invalid value"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(tt.config), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errOut bytes.Buffer
			command := NewSchedulerCommand(tt.options...)
			command.SilenceErrors, command.SilenceUsage = true, true
			command.SetOut(&out)
			command.SetErr(&errOut)
			command.SetArgs(append([]string{"--validate-config", "--config", file}, tt.flags...))
			err := command.Execute()

			expectLines(t, "stdout", strings.ReplaceAll(out.String(), file, "FILE"), tt.wantOut)
			expectLines(t, "stderr", strings.ReplaceAll(errOut.String(), "error: ", ""), tt.wantErrors)
			if (err == nil) != (len(tt.wantErrors) == 0) {
				t.Errorf("returned %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%s: %d error", file, len(tt.wantErrors))) {
				t.Errorf("returned %v, want it to name the file and the number of errors", err)
			}
		})
	}
}

// expectLines compares printed lines with their beginnings.
func expectLines(t *testing.T, where, printed string, want []string) {
	t.Helper()
	var got []string
	if printed != "" {
		got = strings.Split(strings.TrimSpace(printed), "\n")
	}
	if len(got) != len(want) {
		t.Errorf("%s has %d lines, want %d:\n%s", where, len(got), len(want), printed)
		return
	}
	for _, line := range want {
		if !strings.HasPrefix(printed, line) && !strings.Contains(printed, "\n"+line) {
			t.Errorf("%s has no line that begins with %q:\n%s", where, line, printed)
		}
	}
}
