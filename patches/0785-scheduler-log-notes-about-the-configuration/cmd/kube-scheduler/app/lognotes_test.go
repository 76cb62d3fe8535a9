// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// TestSetupLogsNotes sets up schedulers without an API server: none of them sends a request.
func TestSetupLogsNotes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	kubeconfig := write("kubeconfig", "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: \"https://127.0.0.1:1\"}}], "+
		"contexts: [{name: a, context: {cluster: a}}], current-context: a}")
	config := func(version, rest string) string {
		return write(version, fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/%s\nkind: KubeSchedulerConfiguration\n"+
			"leaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: %s}\n%s", version, kubeconfig, rest))
	}
	const chaos = "pluginConfig: [{name: Chaos, args: {namespaces: [a], randomScore: true}}]"
	for name, test := range map[string]struct {
		flags, want []string
	}{
		"flags alone": {flags: []string{"--kubeconfig", kubeconfig, "--leader-elect=false"}},
		"a configuration and --kubeconfig": {
			flags: []string{"--kubeconfig", kubeconfig, "--config", config("v1beta3", "profiles: [{plugins: {filter: {enabled: [{name: Chaos}]}}, "+chaos+"}]\n")},
			want: []string{
				"with --config, the flag --kubeconfig is ignored; set clientConnection.kubeconfig",
				"profiles[0]: Chaos has randomScore and is not enabled at score: it scores nothing",
			},
		},
		"multiPoint in v1beta2": {
			flags: []string{"--config", config("v1beta2", "profiles: [{plugins: {multiPoint: {enabled: [{name: Chaos}]}}, "+chaos+"}]\n")},
			want:  []string{"profiles[0].plugins.multiPoint: v1beta2 ignores this field"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			klog.LogToStderr(false)
			defer klog.LogToStderr(true)
			klog.SetOutput(io.Discard)
			klog.SetOutputBySeverity("WARNING", &logged)
			opts := options.NewOptions()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			for _, set := range opts.Flags.FlagSets {
				flags.AddFlagSet(set)
			}
			if err := flags.Parse(append(test.flags, "--secure-port=0")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if _, _, err := Setup(ctx, opts); err != nil {
				t.Fatal(err)
			}
			klog.Flush()
			klog.SetOutputBySeverity("WARNING", io.Discard)
			for _, want := range test.want {
				if n := strings.Count(logged.String(), want); n != 1 {
					t.Errorf("%q is logged %d times", want, n)
				}
			}
			if n := strings.Count(logged.String(), "notes.go:"); n != len(test.want) {
				t.Errorf("%d notes are logged, want %d:\n%s", n, len(test.want), logged.String())
			}
		})
	}
}
