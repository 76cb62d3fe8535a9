// SPDX-License-Identifier: Apache-2.0

// Package validateconfig runs a real kube-scheduler with valid and invalid configurations, without a cluster. It needs
// a binary that was built before, so it has its own make target.
package validateconfig

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kube-scheduler-fork/test/cluster"
)

// versions are the versions of the configuration that Kubernetes 1.23 reads.
var versions = []string{"v1beta2", "v1beta3"}

// wrong are the args of two plugins with an unknown field, values of a wrong type, values out of their range, and
// values that may be secrets. The unit tests of configcheck and of the plugins' validators have all the others.
const wrong = `
  pluginConfig:
  - {name: ExtensionPointLogger, args: {samplerate: 1, redact: 1, sampleRate: 1.5, namespaces: [A]}}
  - name: NodeLoad
    args:
      prometheus:
        endpoints: ["https://user:PASSWORD@example.com"]
        bearerTokenFile: PASSWORD
        headers: [{name: X-Key, value: 7}]
        matchers: [{label: a-b, operator: "=="}, {label: a, operator: =~, value: "("}]
      refreshInterval: 15
`

// wrongErrors are the beginnings of their errors, after the path of a profile.
var wrongErrors = []string{
	".pluginConfig[0].args.samplerate: unknown field: the known fields are namespaces, queueSort, redact, sampleRate",
	".pluginConfig[0].args.redact: Invalid value: 1: must be true or false",
	".pluginConfig[0].args.sampleRate: Invalid value: 1.5: must be more than 0 and at most 1",
	`.pluginConfig[0].args.namespaces[0]: Invalid value: "A": `,
	".pluginConfig[1].args.prometheus.headers[0].value: Invalid value: (not shown): must be text; put a number, true or false in quotes",
	".pluginConfig[1].args.refreshInterval: Invalid value: 15: must be a duration with its unit, such as 30s or 5m",
	".pluginConfig[1].args.prometheus.endpoints[0]: Forbidden: a user and a password in a URL are not kept secret",
	".pluginConfig[1].args.prometheus.bearerTokenFile: Invalid value: (not shown): must be the absolute path of a file",
	`.pluginConfig[1].args.prometheus.matchers[0].label: Invalid value: "a-b": must be the name of a label in Prometheus`,
	`.pluginConfig[1].args.prometheus.matchers[0].operator: Unsupported value: "==": supported values: "=", "!=", "=~", "!~"`,
	`.pluginConfig[1].args.prometheus.matchers[1].value: Invalid value: "(": must be a regular expression of RE2: `,
}

// result holds the output and the exit code of a command.
type result struct {
	stdout, stderr string
	code           int
}

// run runs the scheduler in an empty directory with an empty environment.
func run(t *testing.T, arguments ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), cluster.Program(t, "KUBE_SCHEDULER"), arguments...)
	command.Dir, command.Env = dir, []string{}
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
	return result{stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

// write writes a configuration file of a version.
func write(t *testing.T, version, rest string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	document := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/%s\nkind: KubeSchedulerConfiguration\n%s", version, rest)
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// expectLines reports an error unless each text of want is in one line, and these lines are all that contain marker.
func expectLines(t *testing.T, printed, marker string, want []string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(printed) {
		if strings.Contains(line, marker) {
			got = append(got, line)
		}
	}
	for _, text := range want {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(line string) bool { return !strings.Contains(line, text) })); n != 1 {
			t.Errorf("%d lines contain %q, want one", n, text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines contain %q, want %d", len(got), marker, len(want))
	}
	if t.Failed() {
		t.Logf("printed:\n%s", printed)
	}
}

// TestStartAndValidateConfigNameAllErrors has the wrong args in two profiles.
func TestStartAndValidateConfigNameAllErrors(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			document := "profiles:\n- schedulerName: default-scheduler" + wrong + "- schedulerName: other" + wrong
			var want []string
			for _, profile := range []string{"profiles[0]", "profiles[1]"} {
				for _, text := range wrongErrors {
					want = append(want, profile+text)
				}
			}
			file := write(t, version, document)
			t.Run("a start", func(t *testing.T) {
				got := run(t, "--config", file, "--secure-port=0")
				expectLines(t, got.stderr, "profiles[", want)
				if strings.Contains(got.stderr, "PASSWORD") {
					t.Errorf("a value that may be a secret is logged:\n%s", got.stderr)
				}
				if text := fmt.Sprintf("%d errors, logged above", len(want)); !strings.Contains(got.stderr, text) || got.code != 1 {
					t.Errorf("exit code %d, want 1, and %q at the end of\n%s", got.code, text, got.stderr)
				}
			})
			t.Run("--validate-config", func(t *testing.T) {
				got := run(t, "--config", file, "--validate-config")
				expectLines(t, got.stderr, "error: profiles[", want)
				if got.stdout != "" || got.code != 1 {
					t.Errorf("exit code %d, want 1, and nothing but errors:\n%s", got.code, got.stdout)
				}
				if strings.Contains(got.stderr, "PASSWORD") {
					t.Errorf("a value that may be a secret is printed:\n%s", got.stderr)
				}
			})
		})
	}
}

// TestValidateConfigContactsNoServer validates a configuration whose API server and extender count connections, while
// the scheduler's own port is in use.
func TestValidateConfigContactsNoServer(t *testing.T) {
	visitors, address := listen(t)
	_, taken := listen(t)
	_, port, err := net.SplitHostPort(taken)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := writeKubeconfig(t, "http://"+address)
	file := write(t, "v1beta3", fmt.Sprintf(`
clientConnection: {kubeconfig: %s}
extenders: [{urlPrefix: "http://%s", filterVerb: filter, prioritizeVerb: prioritize, weight: 2}]
`, kubeconfig, address))
	got := run(t, "--config", file, "--validate-config", "--secure-port="+port, "--authentication-kubeconfig", kubeconfig,
		"--authorization-kubeconfig", kubeconfig, "--tls-cert-file=/no/such/file", "--tls-private-key-file=/no/such/file")
	want := fmt.Sprintf("%s is valid (kubescheduler.config.k8s.io/v1beta3)\nprofile default-scheduler: the default plugins\n"+
		"extender http://%s: filter, prioritize with weight 2\n", file, address)
	if got.code != 0 || got.stdout != want || got.stderr != "" {
		t.Errorf("exit code %d, printed\n%s%s, want\n%s", got.code, got.stdout, got.stderr, want)
	}
	if n := visitors.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// listen counts the connections to a free port.
func listen(t *testing.T) (*atomic.Int32, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var visitors atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			visitors.Add(1)
			connection.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return &visitors, listener.Addr().String()
}

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: %q}}]\n"+
		"contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {token: a}}]\n", server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestValidateConfig has cases that depend on the command's flags, or on patches. The others are tested in configcheck.
func TestValidateConfig(t *testing.T) {
	tests := []struct {
		name, config string
		arguments    []string
		// want are parts of the output; on stderr if there are errors.
		want []string
		code int
	}{
		{
			name: "a feature gate allows", config: "profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 0}]}}]}]\n",
			arguments: []string{"--feature-gates=VolumeCapacityPriority=true"}, want: []string{"is valid"},
		},
		{
			name: "NodeResourcesFit refuses its args", config: "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a b]}}]}]\n",
			want: []string{`error: profiles[0].pluginConfig[0].args.ignoredResources[0]: Invalid value: "a b"`}, code: 1,
		},
		{
			name: "an extender over HTTPS without a CA", config: `extenders: [{urlPrefix: "https://example.com", enableHTTPS: true}]` + "\n",
			want: []string{"error: extenders[0].tlsConfig: Required value: HTTPS needs caFile or caData"}, code: 1,
		},
		{
			name: "a note about args", config: `
profiles:
- plugins: {filter: {enabled: [{name: Chaos}]}}
  pluginConfig: [{name: Chaos, args: {namespaces: [a], rejectPercent: 1}}]
`,
			want: []string{"is valid", "note: profiles[0]: Chaos has rejectPercent and is not enabled at preFilter: it rejects nothing"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, append([]string{"--validate-config", "--config", write(t, "v1beta3", tt.config)}, tt.arguments...)...)
			printed := got.stdout
			if tt.code != 0 {
				printed = got.stderr
			}
			for _, want := range tt.want {
				if !strings.Contains(printed, want) {
					t.Errorf("the output does not contain %q", want)
				}
			}
			if got.code != tt.code {
				t.Errorf("exit code %d, want %d", got.code, tt.code)
			}
			if t.Failed() {
				t.Logf("stdout:\n%s\nstderr:\n%s", got.stdout, got.stderr)
			}
		})
	}
}
