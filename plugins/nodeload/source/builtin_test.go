// SPDX-License-Identifier: Apache-2.0

package source

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

func TestBuiltIn(t *testing.T) {
	for _, name := range []string{"cpu", "memory", "network", "diskIO", "gpu"} {
		query, known := BuiltIn(name, "my_node", 90*time.Second, nil)
		if !known || query.Name != name {
			t.Fatalf("%s: got %+v", name, query)
		}
		for kind, expression := range query.expressions() {
			if !strings.Contains(expression, "by (my_node") {
				t.Errorf("%s %c tells no nodes apart: %s", name, letters[kind], expression)
			}
			for _, placeholder := range []string{"LABEL", "WINDOW", "STEP", "DEVICES", "PRESENCE", "INNER", "BACK", "FINE", "MATCHERS"} {
				if strings.Contains(expression, placeholder) {
					t.Errorf("%s %c has %s left: %s", name, letters[kind], placeholder, expression)
				}
			}
			if kind := Kind(kind); kind != Timestamp && !strings.Contains(expression, "[90s") {
				t.Errorf("%s %c is not about the window: %s", name, letters[kind], expression)
			}
			if strings.Count(expression, "(") != strings.Count(expression, ")") {
				t.Errorf("%s %c has parentheses that do not match: %s", name, letters[kind], expression)
			}
		}
		if !strings.Contains(query.Timestamp, "timestamp(") || !strings.Contains(query.Deviation, "stddev_over_time(") {
			t.Errorf("%s: got %+v", name, query)
		}
	}
	for _, name := range []string{"", "CPU", "diskio", "gpu2"} {
		if query, known := BuiltIn(name, "node", time.Minute, nil); known || query != (Query{}) {
			t.Errorf("%q is known as %+v", name, query)
		}
	}
}

// TestBuiltInMatchers checks that each selector has the matchers, quoted, and that their values are not changed by what
// replaces placeholders. Prometheus' parser reads the queries in test/integration/nodeload.
func TestBuiltInMatchers(t *testing.T) {
	matchers := []config.NodeLoadMatcher{
		{Label: "cluster", Operator: config.NodeLoadEqual, Value: "a \"b\"\\\n\u00e9 WINDOW LABEL MATCHERS,"},
		{Label: "job", Operator: config.NodeLoadNotMatches, Value: `a\.b|c`},
	}
	const want = `cluster="a \"b\"\\\né WINDOW LABEL MATCHERS,",job!~"a\\.b|c"`
	selector := regexp.MustCompile(`(node_[a-z]+_[A-Za-z_]+|DCGM_[A-Z_]+)`)
	for name := range builtIn {
		query, _ := BuiltIn(name, "instance", time.Minute, matchers)
		targets, known := Targets(name, matchers)
		if known != (name != "gpu") {
			t.Errorf("%s: there is an expression for targets: %v", name, known)
		}
		for _, expression := range append([]string{targets}, query.Value, query.Timestamp, query.Deviation) {
			for _, at := range selector.FindAllStringIndex(expression, -1) {
				if rest := expression[at[1]:]; !strings.HasPrefix(rest, "{"+want+"}") && !strings.HasPrefix(rest, "{"+want+",") {
					t.Errorf("%s: a selector does not begin with %s: %s", name, want, expression[at[0]:])
				}
			}
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10 * time.Second: "10s", 90 * time.Second: "90s", 5 * time.Minute: "5m", time.Hour: "1h", 61 * time.Minute: "61m",
		1500 * time.Millisecond: "1500ms",
	} {
		if text := duration(d); text != want {
			t.Errorf("%v is written %s, want %s", d, text, want)
		}
	}
	// A tenth of the window, but at least a second.
	for window, want := range map[time.Duration]string{5 * time.Minute: "[5m:30s])", 10 * time.Second: "[10s:1s])", 15 * time.Second: "[15s:1500ms])"} {
		query, _ := BuiltIn("gpu", "node", window, nil)
		if !strings.HasSuffix(query.Value, want) {
			t.Errorf("got %s, want it to end in %s", query.Value, want)
		}
	}
	if query, _ := BuiltIn("gpu", "node", 2*time.Second, nil); !strings.HasSuffix(query.Value, "[2s:1s])") {
		t.Errorf("got %s", query.Value)
	}
}

// A device that is only an end of another one must not count, and every device of the node must.
func TestBuiltInDevices(t *testing.T) {
	quoted := strings.Trim(strings.TrimPrefix(networkDevices, "device!~"), `"`)
	excluded := regexp.MustCompile("^(?:" + quoted + ")$") // as in PromQL
	for _, name := range []string{"lo", "veth0a1b2c3d", "cali0a1b2c3d4e5", "cni0", "lxc0a1b", "docker0", "br-0a1b2c3d4e5f", "tunl0",
		"0a1b2c3d4e5f607", "0a1b2c3d4e5f_h", "0a1b2c3d_net1_h", "coredns--d0c58e", "web-0-0a1b2c"} {
		if !excluded.MatchString(name) {
			t.Errorf("%s counts", name)
		}
	}
	for _, name := range []string{"eth0", "eth1.100", "eno1", "ens3f0np0", "enp0s31f6", "enx0a1b2c3d4e5f", "enP1s1", "bond0", "team0", "ib0",
		"em1", "p1p1", "wlan0", "hsn0", "vlan100"} {
		if excluded.MatchString(name) {
			t.Errorf("%s does not count", name)
		}
	}
	network, _ := BuiltIn("network", "node", time.Minute, nil)
	if want := `node_network_speed_bytes{` + networkDevices + `}[1m]) > 10e6/8)`; !strings.Contains(network.Value, want) {
		t.Errorf("%s is not in %s", want, network.Value)
	}
}

// The test checks the parts of the queries that were found to matter with a real Prometheus. That runs in
// test/integration/nodeload.
func TestBuiltInRanges(t *testing.T) {
	cpu, _ := BuiltIn("cpu", "node", time.Hour, nil)
	disk, _ := BuiltIn("diskIO", "node", 5*time.Minute, nil)
	short, _ := BuiltIn("diskIO", "node", 10*time.Second, nil)
	for name, test := range map[string]struct{ expression, part string }{
		// Each of a node's two targets covers its own part of the window and must be corrected separately.
		"each target by its own clock": {cpu.Value,
			`{mode="idle"}[1h])) / (rate(node_time_seconds[1h]) > 0 <= 1.1 or max without (`},
		"a timestamp in a long window":             {cpu.Timestamp, "[5m:15s]))"},
		"a timestamp in a short window":            {short.Timestamp, "[10s:1s]))"},
		"a deviation of means of a fifth":          {cpu.Deviation, `{mode="idle"}[12m])`},
		"a deviation over the whole":               {cpu.Deviation, "[1h:6m])"},
		"a deviation of means of two minutes":      {disk.Deviation, "(rate(node_disk_io_time_seconds_total[2m]))"},
		"a deviation of means of the whole window": {short.Deviation, "(rate(node_disk_io_time_seconds_total[10s]))"},
	} {
		if !strings.Contains(test.expression, test.part) {
			t.Errorf("%s: %s is not in %s", name, test.part, test.expression)
		}
	}
	// This is by far the most expensive part: one series per processor of each node.
	if rates := strings.Count(cpu.Value, "rate(node_cpu_seconds_total"); rates != 1 {
		t.Errorf("the rates of all processors are taken %d times: %s", rates, cpu.Value)
	}
}
