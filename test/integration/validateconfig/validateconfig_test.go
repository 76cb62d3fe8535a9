// SPDX-License-Identifier: Apache-2.0

// Package validateconfig sees what a real kube-scheduler says of configurations, wrong and right ones, without a
// cluster. It needs a binary that was built before, so it is run by its own make target.
package validateconfig

import (
	"bytes"
	"cmp"
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

	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/test/cluster"
)

// versions are those of the configuration that Kubernetes 1.23 reads.
var versions = []string{"v1beta2", "v1beta3"}

// plugins are this project's, with args that are wrong in each way, and with the args that are written when only those
// of given are in the file.
var plugins = []struct {
	name string
	// point is one of its extension points, at which it is enabled; v1beta2 has no multiPoint that works.
	point string
	// wrong are args with an unknown field, a value of a wrong type, and values out of their range; errors are the ends
	// of the lines that say so, after the path of the args.
	wrong  string
	errors []string
	// given are the args that have no default.
	given     string
	defaulted string
}{
	{
		name:  "Chaos",
		point: "filter",
		wrong: "{namespaces: [a, kube-system], seeds: 1, dryRun: perhaps, rejectPercent: 101, maxPermitDelay: 11m, randomBindPercent: -1}",
		errors: []string{
			".seeds: unknown field: known here are dryRun, maxConsecutiveRejections, maxPermitDelay, namespaces, randomBindPercent, randomScore, rejectPercent, seed",
			`.dryRun: Invalid value: "perhaps": must be true or false`,
			".namespaces[1]: Forbidden: the pods of kube-system are never disturbed",
			".rejectPercent: Invalid value: 101: must be between 0 and 100, inclusive",
			`.maxPermitDelay: Invalid value: "11m0s": must be between 0s and 10m0s, inclusive`,
			".randomBindPercent: Invalid value: -1: must be between 0 and 100, inclusive",
		},
		given: "{namespaces: [test]}",
		defaulted: "{namespaces: [test], seed: 0, dryRun: false, rejectPercent: 0, maxConsecutiveRejections: 3, randomScore: false, " +
			"maxPermitDelay: 0s, randomBindPercent: 0}",
	},
	{
		name:  "DataLocality",
		point: "score",
		wrong: "{dataset: a, nodeAnnotation: a b, nodeLabelPrefix: a/b/, servers: [{namespaces: [A]}], levels: [{topologyKey: rack, percent: 101}, {topologyKey: rack, percent: most}], requireWithin: zone}",
		errors: []string{
			".dataset: unknown field: known here are datasetsAnnotation, levels, nodeAnnotation, nodeLabelPrefix, requireWithin, servers",
			`.levels[1].percent: Invalid value: "most": must be a whole number between -2147483648 and 2147483647`,
			`.nodeAnnotation: Invalid value: "a b": `,
			`.nodeLabelPrefix: Invalid value: "a/b/": must be the beginning of a label's key`,
			`.servers[0].namespaces[0]: Invalid value: "A": `,
			".servers[0].datasetLabel: Required value: the key of a label",
			`.levels[0].percent: Invalid value: 101: must be between 0 and 100, inclusive`,
			`.levels[1].topologyKey: Duplicate value: "rack"`,
			`.requireWithin: Unsupported value: "zone": supported values: "rack"`,
		},
		defaulted: "{datasetsAnnotation: data-locality.scheduler/datasets, nodeAnnotation: data-locality.scheduler/datasets, nodeLabelPrefix: '', " +
			"levels: [{topologyKey: kubernetes.io/hostname, percent: 100}, {topologyKey: topology.kubernetes.io/zone, percent: 50}], requireWithin: ''}",
	},
	{
		name:  "ExtensionPointLogger",
		point: "permit",
		wrong: "{samplerate: 1, redact: 1, sampleRate: 1.5, namespaces: [A]}",
		errors: []string{
			".samplerate: unknown field: known here are namespaces, queueSort, redact, sampleRate",
			".redact: Invalid value: 1: must be true or false",
			".sampleRate: Invalid value: 1.5: must be more than 0 and at most 1",
			`.namespaces[0]: Invalid value: "A": `,
		},
		defaulted: "{sampleRate: 1, redact: false, queueSort: false}",
	},
	{
		name:  "MyScorePlugin",
		point: "score",
		wrong: "{nodeLabels: a, preferredValues: ssd, nodeLabel: a b}",
		errors: []string{
			".nodeLabels: unknown field: known here are nodeLabel, preferredValues",
			`.preferredValues: Invalid value: "ssd": must be a list`,
			`.nodeLabel: Invalid value: "a b": `,
		},
		defaulted: "{nodeLabel: disktype, preferredValues: [ssd]}",
	},
	{
		name:  "NodeFilter",
		point: "filter",
		wrong: "{rules: [{name: a, action: Allow, nodeNames: [7]}, {name: a, action: Forbid, nodeNames: ['*'], nodeSelectors: {}}]}",
		errors: []string{
			".rules[1].nodeSelectors: unknown field: known here are action, maxPercent, minPercent, name, namespaces, nodeNames, nodeSelector, podSelector, restrictedLabels, weight",
			".rules[0].nodeNames[0]: Invalid value: 7: must be text; quotes make text of a number, of true and of false",
			`.rules[1].name: Duplicate value: "a"`,
			`.rules[1].action: Unsupported value: "Forbid": supported values: "Allow", "Deny", "Prefer", "Share"`,
		},
		given:     "{rules: [{name: a, action: Deny, nodeNames: ['*']}]}",
		defaulted: "{rules: [{name: a, action: Deny, nodeNames: ['*']}], defaultAction: Allow}",
	},
	{
		name:  "NodeLoad",
		point: "score",
		wrong: "{prometheus: {endpoint: a, endpoints: ['https://user:PASSWORD@example.com', 'http://example.com?token=PASSWORD', PASSWORD], timeout: 50ms, " +
			"tls: {caFile: ca.pem, keyFile: PASSWORD, serverName: a b, insecureSkipVerify: true}, bearerTokenFile: PASSWORD, " +
			"headers: [{name: Host, value: a}, {name: Authorization, value: PASSWORD}, {name: X-Key, value: 7}, {name: X-Tenant}]}, " +
			"refreshInterval: 15, maxSampleAge: 2h, nodeMatch: {label: a-b, by: Address}, fallback: Zero, filterOnStale: Shut, " +
			"minFreshNodesPercent: 101, exemptDaemonSets: often, exemptPriorityAbove: high, " +
			"resources: [{name: cpu, nodeMatch: {label: node, by: Address}, unit: Percent, capacity: some, window: 1s, threshold: 0, weight: 101, strategy: Best, target: 100, margin: 11, sensitivity: 0, " +
			"estimator: {resource: cpus, by: Limit, factor: 0, default: -1, annotation: a b}}, {name: a_b, query: up, strategy: Risk}, {name: memory, timestampQuery: up}]}",
		errors: []string{
			".prometheus.endpoint: unknown field: known here are bearerTokenFile, endpoints, headers, timeout, tls",
			".prometheus.headers[2].value: Invalid value: (not shown): must be text; quotes make text of a number, of true and of false",
			".refreshInterval: Invalid value: 15: must be a duration with its unit, such as 30s or 5m",
			`.exemptDaemonSets: Invalid value: "often": must be true or false`,
			`.exemptPriorityAbove: Invalid value: "high": must be a whole number between -2147483648 and 2147483647`,
			`.resources[0].capacity: Invalid value: "some": must be a quantity, such as 250m or 2Gi`,
			".prometheus.endpoints[0]: Forbidden: a user and a password in a URL are not kept secret",
			".prometheus.endpoints[1]: Forbidden: a query and a fragment have no place in it",
			".prometheus.endpoints[2]: Invalid value: (not shown): must be a URL with a host",
			`.prometheus.timeout: Invalid value: "50ms": must be between 100ms and 1m0s, inclusive`,
			".prometheus.tls.caFile: Invalid value: (not shown): must be the absolute path of a file",
			".prometheus.tls.certFile: Required value: the certificate of the key in keyFile",
			".prometheus.tls.keyFile: Invalid value: (not shown): must be the absolute path of a file",
			`.prometheus.tls.serverName: Invalid value: "a b": `,
			".prometheus.tls.insecureSkipVerify: Forbidden: with caFile, servers are verified",
			".prometheus.bearerTokenFile: Invalid value: (not shown): must be the absolute path of a file",
			".prometheus.headers[0].name: Forbidden: the client itself sets Host",
			".prometheus.headers[1].name: Forbidden: bearerTokenFile sets Authorization",
			".prometheus.headers[1].value: Forbidden: a configuration is no place for it",
			".prometheus.headers[3]: Required value: value or valueFile",
			`.maxSampleAge: Invalid value: "2h0m0s": must be more than refreshInterval, which is 30s, and at most 1h0m0s`,
			`.nodeMatch.label: Invalid value: "a-b": must be the name of a label in Prometheus`,
			`.nodeMatch.by: Unsupported value: "Address": supported values: "Auto", "Name", "InternalIP", "Hostname", "ProviderID"`,
			`.resources[0].nodeMatch.by: Unsupported value: "Address": supported values: "Auto", "Name", "InternalIP", "Hostname", "ProviderID"`,
			`.resources[0].unit: Invalid value: "Percent": must be Ratio, which the built-in query of cpu returns`,
			`.resources[0].window: Invalid value: "1s": must be between 10s and 1h0m0s, inclusive`,
			".resources[0].threshold: Invalid value: 0: must be between 1 and 100, inclusive",
			".resources[0].weight: Invalid value: 101: must be between 0 and 100, inclusive",
			`.resources[0].strategy: Unsupported value: "Best": supported values: "LeastUsed", "TargetUtilization", "Risk"`,
			".resources[0].target: Invalid value: 100: must be between 1 and 99, inclusive",
			".resources[0].margin: Invalid value: 11: must be between 0 and 10, inclusive",
			".resources[0].sensitivity: Invalid value: 0: must be more than 0 and at most 10",
			`.resources[0].estimator.resource: Unsupported value: "cpus": supported values: "cpu", "memory", "ephemeral-storage"`,
			`.resources[0].estimator.by: Unsupported value: "Limit": supported values: "Requests", "Limits"`,
			".resources[0].estimator.factor: Invalid value: 0: must be between 1 and 1000, inclusive",
			`.resources[0].estimator.default: Invalid value: "-1": must be at least 0`,
			`.resources[0].estimator.annotation: Invalid value: "a b": `,
			`.resources[1].name: Invalid value: "a_b": must be 1 to 54 letters, digits and '-'`,
			".resources[1].timestampQuery: Required value: with query, the time of its newest raw samples",
			".resources[1].deviationQuery: Required value: the strategy Risk scores by the standard deviation of query",
			".resources[2].query: Required value: timestampQuery and deviationQuery are about it",
			`.fallback: Unsupported value: "Zero": supported values: "Requests", "Neutral"`,
			`.filterOnStale: Unsupported value: "Shut": supported values: "Open", "Closed"`,
			".minFreshNodesPercent: Invalid value: 101: must be between 0 and 100, inclusive",
		},
		// No server answers there, which is known at once.
		given: "{prometheus: {endpoints: ['http://127.0.0.1:1']}}",
		defaulted: "{source: Prometheus, prometheus: {endpoints: ['http://127.0.0.1:1'], timeout: 10s, tls: {insecureSkipVerify: false}}, refreshInterval: 30s, maxSampleAge: 3m0s, " +
			"nodeMatch: {label: instance, by: Auto}, resources: [" +
			"{name: cpu, unit: Ratio, window: 5m0s, weight: 1, strategy: LeastUsed, target: 40, margin: 1, sensitivity: 1, estimator: {resource: cpu, by: Requests, factor: 85, default: 250m}}, " +
			"{name: memory, unit: Ratio, window: 5m0s, weight: 1, strategy: LeastUsed, target: 40, margin: 1, sensitivity: 1, estimator: {resource: memory, by: Requests, factor: 70, default: 200M}}], " +
			"fallback: Requests, filterOnStale: Open, minFreshNodesPercent: 50, exemptDaemonSets: true, exemptPriorityAbove: 1999999999}",
	},
	{
		name:  "PodFilter",
		point: "preFilter",
		wrong: "{rule: [], rules: [{name: a, action: Deny, podNames: web-*}], defaultAction: Maybe}",
		errors: []string{
			".rule: unknown field: known here are defaultAction, rules",
			`.rules[0].podNames: Invalid value: "web-*": must be a list`,
			`.defaultAction: Unsupported value: "Maybe": supported values: "Allow", "Deny"`,
		},
		given:     "{rules: [{name: a, action: Deny, podNames: ['*']}]}",
		defaulted: "{rules: [{name: a, action: Deny, podNames: ['*']}], defaultAction: Allow}",
	},
	{
		// Every number is a seed.
		name:  "RandScore",
		point: "score",
		wrong: "{sed: 1, seed: one}",
		errors: []string{
			".sed: unknown field: known here are seed",
			`.seed: Invalid value: "one": must be a whole number between -9223372036854775808 and 9223372036854775807`,
		},
		defaulted: "{seed: 0}",
	},
	{
		name:  "RunningImageLocality",
		point: "score",
		wrong: "{spread: 1, sizeWeight: half, spreadWeight: 101, count: Pods}",
		errors: []string{
			".spread: unknown field: known here are count, sizeWeight, spreadWeight",
			`.sizeWeight: Invalid value: "half": must be a whole number between -2147483648 and 2147483647`,
			".spreadWeight: Invalid value: 101: must be between 0 and 100, inclusive",
			`.count: Unsupported value: "Pods": supported values: "Images", "Containers"`,
		},
		defaulted: "{count: Images, sizeWeight: 0, spreadWeight: 100}",
	},
}

// result is what a command printed, and the code it exited with.
type result struct {
	stdout, stderr string
	code           int
}

// run runs the scheduler in an empty folder and without anything of the environment.
func run(t *testing.T, arguments ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), cluster.Program(t, "KUBE_SCHEDULER"), arguments...)
	command.Dir, command.Env = folder, []string{}
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("it left behind %v, %v", left, err)
	}
	return result{stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

// write makes a configuration file of a version.
func write(t *testing.T, version, rest string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	document := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/%s\nkind: KubeSchedulerConfiguration\n%s", version, rest)
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// expectLines wants a line for each of want that holds it, and no more lines than those that hold marker.
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
			t.Errorf("%d lines say %q, want one", n, text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines hold %q, want %d", len(got), marker, len(want))
	}
	if t.Failed() {
		t.Logf("printed:\n%s", printed)
	}
}

// TestAllErrorsOfAFileStopTheScheduler has wrong args for all plugins in one file, in two profiles.
func TestAllErrorsOfAFileStopTheScheduler(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			document := "profiles:\n"
			var want []string
			for i, profile := range []string{"default-scheduler", "other"} {
				document += fmt.Sprintf("- schedulerName: %s\n  pluginConfig:\n", profile)
				for j, plugin := range plugins {
					document += fmt.Sprintf("  - {name: %s, args: %s}\n", plugin.name, plugin.wrong)
					for _, text := range plugin.errors {
						want = append(want, fmt.Sprintf("profiles[%d].pluginConfig[%d].args%s", i, j, text))
					}
				}
			}
			file := write(t, version, document)
			t.Run("a start", func(t *testing.T) {
				got := run(t, "--config", file, "--secure-port=0")
				expectLines(t, got.stderr, "profiles[", want)
				if strings.Contains(got.stderr, "PASSWORD") {
					t.Errorf("what may be a secret is logged:\n%s", got.stderr)
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
					t.Errorf("what may be a secret is printed:\n%s", got.stderr)
				}
			})
		})
	}
}

// TestWrittenConfigurationsHoldTheDefaults enables every plugin with --write-config-to, and reads its args in what is
// written.
func TestWrittenConfigurationsHoldTheDefaults(t *testing.T) {
	kubeconfig := writeKubeconfig(t, "https://127.0.0.1:1")
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			enabled := map[string]string{}
			for _, plugin := range plugins {
				enabled[plugin.point] += fmt.Sprintf("      - name: %s\n", plugin.name)
			}
			document := fmt.Sprintf("clientConnection: {kubeconfig: %s}\nprofiles:\n- plugins:\n", kubeconfig)
			for point, names := range enabled {
				document += fmt.Sprintf("    %s:\n      enabled:\n%s", point, names)
			}
			document += "  pluginConfig:\n"
			for _, plugin := range plugins {
				if plugin.given != "" {
					document += fmt.Sprintf("  - {name: %s, args: %s}\n", plugin.name, plugin.given)
				}
			}
			written := filepath.Join(t.TempDir(), "written.yaml")
			if got := run(t, "--config", write(t, version, document), "--write-config-to", written, "--secure-port=0"); got.code != 0 {
				t.Fatalf("exit code %d:\n%s", got.code, got.stderr)
			}
			args := readArgs(t, written, version)
			for _, plugin := range plugins {
				want := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/" + version, "kind": plugin.name + "Args"}
				if err := yaml.Unmarshal([]byte(plugin.defaulted), &want); err != nil {
					t.Fatal(err)
				}
				if got := args[plugin.name]; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("the args of %s are\n%v, want\n%v", plugin.name, got, want)
				}
			}
			if got := run(t, "--config", written, "--validate-config"); got.code != 0 {
				t.Errorf("what was written is not valid:\n%s", got.stderr)
			}
		})
	}
}

// readArgs returns the args in the first profile of a file by the plugin's name.
func readArgs(t *testing.T, file, version string) map[string]map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var configuration struct {
		APIVersion string
		Profiles   []struct {
			PluginConfig []struct {
				Name string
				Args map[string]any
			}
		}
	}
	if err := yaml.Unmarshal(data, &configuration); err != nil {
		t.Fatal(err)
	}
	if configuration.APIVersion != "kubescheduler.config.k8s.io/"+version || len(configuration.Profiles) != 1 {
		t.Fatalf("%s is of version %s with %d profiles", file, configuration.APIVersion, len(configuration.Profiles))
	}
	args := map[string]map[string]any{}
	for _, plugin := range configuration.Profiles[0].PluginConfig {
		args[plugin.Name] = plugin.Args
	}
	return args
}

// TestNothingIsContacted validates a configuration whose API server and extender are there and count who comes, while
// the scheduler's own port is taken.
func TestNothingIsContacted(t *testing.T) {
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

// listen counts the connections to a port that is free.
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

// TestConfigurationsOfThisProjectAreValid is about every file that people copy.
func TestConfigurationsOfThisProjectAreValid(t *testing.T) {
	var files []string
	for _, pattern := range []string{"config/*.yaml", "examples/scenarios/*/scheduler.yaml"} {
		found, err := filepath.Glob("../../../manifests/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range append(files, "../../../manifests/second-scheduler/config.yaml") {
		t.Run(strings.TrimPrefix(file, "../../../manifests/"), func(t *testing.T) {
			absolute, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, "--config", absolute, "--validate-config")
			t.Logf("%s", got.stdout)
			if got.code != 0 {
				t.Errorf("exit code %d:\n%s", got.code, got.stderr)
			}
		})
	}
}

func TestValidation(t *testing.T) {
	const needsGate = "profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 0, score: 0}]}}]}]\n"
	tests := []struct {
		// version is v1beta3 if it is empty.
		name, version, config string
		arguments             []string
		// want are parts of what is printed; on stderr if there are errors.
		want []string
		code int
	}{
		{
			name: "without kubeconfig", config: "",
			want: []string{"is valid", "note: clientConnection.kubeconfig is not set"},
		},
		{
			name: "a kubeconfig of another machine", config: "clientConnection: {kubeconfig: /etc/kubernetes/no-such.conf}\n",
			want: []string{"is valid", "note: clientConnection.kubeconfig is not to be found on this machine: stat /etc/kubernetes/no-such.conf: no such file or directory"},
		},
		{
			name: "no profile for pods that name none", config: "profiles: [{schedulerName: mine}]\n",
			want: []string{"is valid", "note: no profile is named default-scheduler"},
		},
		{
			name: "what the older version does not do", version: "v1beta2", config: "profiles: [{plugins: {multiPoint: {enabled: [{name: RandScore}]}}}]\n",
			want: []string{"profile default-scheduler: the default plugins\n", "note: profiles[0].plugins.multiPoint: "},
		},
		{
			name: "what a feature gate allows", config: needsGate, arguments: []string{"--feature-gates=VolumeCapacityPriority=true"},
			want: []string{"is valid"},
		},
		{
			name: "what a feature gate forbids", config: needsGate,
			want: []string{"error: profiles[0].pluginConfig[0].args.shape: Invalid value"}, code: 1,
		},
		{
			name: "args that NodeResourcesFit refuses", config: "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a b]}}]}]\n",
			want: []string{`error: profiles[0]: plugin NodeResourcesFit: ignoredResources[0]: Invalid value: "a b"`}, code: 1,
		},
		{
			name: "args of NodeResourcesFit that a start accepts", config: `
profiles:
- plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}
  pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a b]}}]
`,
			want: []string{"is valid", `warning: profiles[0].pluginConfig[0].args.ignoredResources[0]: Invalid value: "a b"`},
		},
		{
			name: "a plugin that is not there, in two profiles", config: `
profiles:
- {schedulerName: a, plugins: {score: {enabled: [{name: MyScorePlugins}]}}}
- {schedulerName: b, plugins: {filter: {enabled: [{name: MyScorePlugins}]}}}
`,
			want: []string{
				"error: profiles[0].plugins.score.enabled[MyScorePlugins]: this scheduler has no plugin of that name\n",
				"error: profiles[1].plugins.filter.enabled[MyScorePlugins]: this scheduler has no plugin of that name\n",
			},
			code: 1,
		},
		{
			name: "an extender that any server could be", config: `extenders: [{urlPrefix: "https://example.com", enableHTTPS: true}]` + "\n",
			want: []string{"error: extenders[0].tlsConfig: Required value: HTTPS needs caFile or caData"}, code: 1,
		},
		{
			name: "an extender whose CA is not there", config: `extenders: [{urlPrefix: "https://example.com", enableHTTPS: true, tlsConfig: {caFile: /no/such/ca.crt}}]` + "\n",
			want: []string{"is valid", "note: extenders[0].tlsConfig.caFile is not to be found on this machine: stat /no/such/ca.crt: no such file or directory"},
		},
		{
			name: "an extender whose CA is none", config: `extenders: [{urlPrefix: "https://example.com", enableHTTPS: true, tlsConfig: {caFile: /dev}}]` + "\n",
			want: []string{"error: extenders[0]: ", "/dev"}, code: 1,
		},
		{
			name: "two documents", config: "---\nparallelism: 0\n",
			want: []string{"is valid", "note: the file has more than one YAML document"},
		},
		{
			name: "Chaos where it does nothing", config: `
profiles:
- plugins: {filter: {enabled: [{name: Chaos}]}}
  pluginConfig: [{name: Chaos, args: {namespaces: [a], rejectPercent: 1}}]
`,
			want: []string{"is valid", "note: profiles[0]: Chaos has rejectPercent and is not enabled at preFilter: it rejects nothing"},
		},
		{
			name: "a logger that is never asked at bind", config: "profiles: [{plugins: {multiPoint: {enabled: [{name: ExtensionPointLogger}]}}}]\n",
			want: []string{"is valid", "note: profiles[0]: ExtensionPointLogger is enabled at bind behind DefaultBinder, which binds every pod"},
		},
		{
			name: "a number that is none", config: "profiles: [{pluginConfig: [{name: ExtensionPointLogger, args: {sampleRate: .nan}}]}]\n",
			want: []string{`error: profiles[0].pluginConfig[0].args.sampleRate: Invalid value: ".nan": must be a number`}, code: 1,
		},
		{
			name: "a wrong flag and a wrong field", config: "paralelism: 1\n", arguments: []string{"--secure-port=70000"},
			want: []string{"error: --secure-port 70000 must be between", "error: paralelism: unknown field"}, code: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, append([]string{"--validate-config", "--config", write(t, cmp.Or(tt.version, "v1beta3"), tt.config)}, tt.arguments...)...)
			printed := got.stdout
			if tt.code != 0 {
				printed = got.stderr
			}
			for _, want := range tt.want {
				if !strings.Contains(printed, want) {
					t.Errorf("it does not say %q", want)
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
