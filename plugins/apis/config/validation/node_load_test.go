// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

func lasting(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// nodeLoad are valid args of NodeLoad, with a change.
func nodeLoad(change func(args *config.NodeLoadArgs)) *config.NodeLoadArgs {
	args := &config.NodeLoadArgs{
		Prometheus:      config.NodeLoadPrometheus{Endpoints: []string{"https://prometheus.example.com"}, Timeout: lasting(time.Second)},
		RefreshInterval: lasting(30 * time.Second), MaxSampleAge: lasting(time.Minute),
		NodeMatch: config.NodeLoadNodeMatch{Label: "instance", By: config.NodeLoadMatchName},
		Resources: []config.NodeLoadResource{measured("cpu")},
		Fallback:  config.NodeLoadFallbackRequests, FilterOnStale: config.NodeLoadFilterOpen,
	}
	if change != nil {
		change(args)
	}
	return args
}

// fromMetricsServer are valid args of NodeLoad for the metrics API, with a change.
func fromMetricsServer(change func(args *config.NodeLoadArgs)) *config.NodeLoadArgs {
	args := nodeLoad(nil)
	args.Source = config.NodeLoadSourceMetricsServer
	args.Prometheus = config.NodeLoadPrometheus{Timeout: lasting(time.Second)}
	args.Resources[0].Unit = config.NodeLoadAbsolute
	if change != nil {
		change(args)
	}
	return args
}

// measured is a resource of which no more is given than must be.
func measured(name string) config.NodeLoadResource {
	return config.NodeLoadResource{
		Name: name, Unit: config.NodeLoadRatio, Window: lasting(time.Minute), Weight: pointer.Int32(1), Strategy: config.NodeLoadLeastUsed, Target: pointer.Int32(40), Margin: pointer.Float64(1), Sensitivity: pointer.Float64(1),
		Estimator: config.NodeLoadEstimator{By: config.NodeLoadEstimateRequests, Factor: pointer.Int32(100)},
	}
}

// asked is a resource with queries of its own.
func asked(name string) config.NodeLoadResource {
	r := measured(name)
	r.Query, r.TimestampQuery = "query", "time"
	return r
}

func urls(count int) []string {
	var urls []string
	for i := 0; i < count; i++ {
		urls = append(urls, fmt.Sprintf("http://prometheus-%d:9090", i))
	}
	return urls
}

func matchers(count int) []config.NodeLoadMatcher {
	var matchers []config.NodeLoadMatcher
	for i := 0; i < count; i++ {
		matchers = append(matchers, config.NodeLoadMatcher{Label: fmt.Sprintf("label_%d", i), Operator: config.NodeLoadEqual, Value: "a"})
	}
	return matchers
}

func headers(count int) []config.NodeLoadHeader {
	var headers []config.NodeLoadHeader
	for i := 0; i < count; i++ {
		headers = append(headers, config.NodeLoadHeader{Name: fmt.Sprintf("X-%d", i), Value: "a"})
	}
	return headers
}

func resources(count int) []config.NodeLoadResource {
	var resources []config.NodeLoadResource
	for i := 0; i < count; i++ {
		resources = append(resources, asked(fmt.Sprintf("r%d", i)))
	}
	return resources
}

func TestValidateNodeLoadArgs(t *testing.T) {
	tests := []struct {
		name   string
		change func(args *config.NodeLoadArgs)
		want   []string
	}{
		{name: "the shortest times", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.Timeout, args.RefreshInterval, args.MaxSampleAge = lasting(100*time.Millisecond), lasting(time.Second), lasting(time.Second+1)
		}},
		{name: "the load of pods of a lower priority can be evicted", change: func(args *config.NodeLoadArgs) {
			args.LowerPriorityLoad = config.NodeLoadLowerPriorityPreemptible
			args.Resources[0].Threshold, args.Resources[0].PodQuery, args.Resources[0].PodTimestampQuery = pointer.Int32(80), "use", "time"
		}},
		{
			name: "it is not measured", change: func(args *config.NodeLoadArgs) {
				args.LowerPriorityLoad = config.NodeLoadLowerPriorityIgnored
				args.Resources[0].Threshold = pointer.Int32(80)
			},
			want: []string{"args.resources: Required value: with lowerPriorityLoad Ignored, at least one with a threshold and podQuery"},
		},
		{
			name: "it is measured, and there is no threshold", change: func(args *config.NodeLoadArgs) {
				args.LowerPriorityLoad = config.NodeLoadLowerPriorityPreemptible
				args.Resources[0].PodQuery, args.Resources[0].PodTimestampQuery = "use", "time"
			},
			want: []string{"args.resources: Required value: with lowerPriorityLoad Preemptible, at least one with a threshold and podQuery"},
		},
		{
			name: "a treatment that there is not", change: func(args *config.NodeLoadArgs) { args.LowerPriorityLoad = "Evicted" },
			want: []string{`args.lowerPriorityLoad: Unsupported value: "Evicted": supported values: "Counts", "Preemptible", "Ignored"`},
		},
		{
			name: "a query for pods without a time", change: func(args *config.NodeLoadArgs) { args.Resources[0].PodQuery = "use" },
			want: []string{"args.resources[0].podTimestampQuery: Required value: with podQuery, the time of its newest raw samples"},
		},
		{
			name: "a time without a query for pods", change: func(args *config.NodeLoadArgs) { args.Resources[0].PodTimestampQuery = "time" },
			want: []string{"args.resources[0].podQuery: Required value: podTimestampQuery refers to it"},
		},
		{name: "the longest times and the other choices", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.Timeout, args.RefreshInterval, args.MaxSampleAge = lasting(time.Minute), lasting(10*time.Minute), lasting(time.Hour)
			args.MinFreshNodesPercent, args.Fallback, args.FilterOnStale = pointer.Int32(100), config.NodeLoadFallbackNeutral, config.NodeLoadFilterClosed
			args.NodeMatch = config.NodeLoadNodeMatch{Label: "_n0", By: config.NodeLoadMatchAuto}
		}},
		{
			name: "times that are too short", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Timeout, args.RefreshInterval, args.MaxSampleAge = lasting(100*time.Millisecond-1), lasting(time.Second-1), lasting(time.Second-1)
			},
			want: []string{
				`args.prometheus.timeout: Invalid value: "99.999999ms": must be between 100ms and 1m0s, inclusive`,
				`args.refreshInterval: Invalid value: "999.999999ms": must be between 1s and 10m0s, inclusive`,
				`args.maxSampleAge: Invalid value: "999.999999ms": must be more than refreshInterval, which is 999.999999ms, and at most 1h0m0s`,
			},
		},
		{
			name: "times that are too long", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Timeout, args.RefreshInterval, args.MaxSampleAge = lasting(time.Minute+1), lasting(10*time.Minute+1), lasting(time.Hour+1)
			},
			want: []string{"args.prometheus.timeout: Invalid value", "args.refreshInterval: Invalid value", "args.maxSampleAge: Invalid value"},
		},
		{
			name: "more than all nodes must be fresh", change: func(args *config.NodeLoadArgs) { args.MinFreshNodesPercent = pointer.Int32(101) },
			want: []string{"args.minFreshNodesPercent: Invalid value: 101: must be between 0 and 100, inclusive"},
		},
		{
			name: "what there is no choice of", change: func(args *config.NodeLoadArgs) {
				args.Fallback, args.FilterOnStale, args.NodeMatch.By = "Zero", "open", "IP"
			},
			want: []string{
				`args.nodeMatch.by: Unsupported value: "IP": supported values: "Auto", "Name", "InternalIP", "Hostname", "ProviderID"`,
				`args.fallback: Unsupported value: "Zero": supported values: "Requests", "Neutral"`,
				`args.filterOnStale: Unsupported value: "open": supported values: "Open", "Closed"`,
			},
		},

		{name: "as many servers as there may be", change: func(args *config.NodeLoadArgs) { args.Prometheus.Endpoints = urls(8) }},
		{
			name: "a server more", change: func(args *config.NodeLoadArgs) { args.Prometheus.Endpoints = urls(9) },
			want: []string{"args.prometheus.endpoints: Too many: 9: must have at most 8"},
		},
		{
			name: "no server", change: func(args *config.NodeLoadArgs) { args.Prometheus.Endpoints = nil },
			want: []string{"args.prometheus.endpoints: Required value: 1 to 8 URLs of servers"},
		},
		{name: "addresses, ports and prefixes", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.Endpoints = []string{"http://10.0.0.1", "https://[fd00::1]:1/", "HTTP://a:65535/b/api/v1x", "https://a/prometheus/"}
		}},
		{
			name: "the same server twice", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Endpoints = []string{"https://a/", "https://b", "https://a"}
			},
			want: []string{`args.prometheus.endpoints[2]: Duplicate value: "https://a"`},
		},
		{
			name: "the API's path", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Endpoints = []string{"https://a/api/v1", "https://a/prometheus/api/v1/query"}
			},
			want: []string{
				"args.prometheus.endpoints[0]: Invalid value: (not shown): must end before /api/v1",
				"args.prometheus.endpoints[1]: Invalid value: (not shown): must end before /api/v1",
			},
		},

		{name: "all of TLS", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.TLS = config.NodeLoadTLS{CAFile: "/ca.crt", CertFile: "/tls.crt", KeyFile: "/tls.key", ServerName: "Prometheus.example.com"}
		}},
		{name: "no trust is needed, and the name is an address", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.TLS = config.NodeLoadTLS{InsecureSkipVerify: true, ServerName: "fd00::1"}
		}},
		{name: "TLS of one of the servers", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.Endpoints = []string{"http://a", "HTTPS://b"}
			args.Prometheus.TLS.CAFile = "/ca.crt"
		}},
		{
			name: "TLS of no server", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Endpoints = urls(2)
				args.Prometheus.TLS.CAFile = "/ca.crt"
			},
			want: []string{"args.prometheus.tls: Forbidden: none of the endpoints begins with https://"},
		},
		{
			name: "TLS of a server that cannot be told", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Endpoints = []string{"prometheus:9090"}
				args.Prometheus.TLS.CAFile = "/ca.crt"
			},
			want: []string{"args.prometheus.endpoints[0]: Invalid value"},
		},
		{
			name: "servers are verified, and not", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.TLS = config.NodeLoadTLS{CAFile: "/ca.crt", InsecureSkipVerify: true}
			},
			want: []string{"args.prometheus.tls.insecureSkipVerify: Forbidden: caFile makes the client verify servers"},
		},
		{
			name: "a certificate without its key", change: func(args *config.NodeLoadArgs) { args.Prometheus.TLS.CertFile = "/tls.crt" },
			want: []string{"args.prometheus.tls.keyFile: Required value"},
		},
		{
			name: "a key without its certificate", change: func(args *config.NodeLoadArgs) { args.Prometheus.TLS.KeyFile = "/tls.key" },
			want: []string{"args.prometheus.tls.certFile: Required value"},
		},
		{
			name: "files that are nowhere, and a name that is none", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.TLS = config.NodeLoadTLS{CAFile: "ca.crt", CertFile: "./tls.crt", KeyFile: "/etc/", ServerName: "a_b"}
				args.Prometheus.BearerTokenFile = "token"
			},
			want: []string{
				"args.prometheus.tls.caFile: Invalid value: (not shown): must be the absolute path of a file", "args.prometheus.tls.certFile: Invalid value",
				"args.prometheus.tls.keyFile: Invalid value", `args.prometheus.tls.serverName: Invalid value: "a_b"`,
				"args.prometheus.bearerTokenFile: Invalid value: (not shown): must be the absolute path of a file",
			},
		},

		{name: "as many headers as there may be, and a token", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.Headers, args.Prometheus.BearerTokenFile = headers(16), "/token"
		}},
		{
			name: "a header more", change: func(args *config.NodeLoadArgs) { args.Prometheus.Headers = headers(17) },
			want: []string{"args.prometheus.headers: Too many: 17: must have at most 16"},
		},
		{name: "an authorization of another kind, and any text", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.Headers = []config.NodeLoadHeader{{Name: "authorization", ValueFile: "/value"}, {Name: "X-Scope-OrgID", Value: "tenant\t1 ä"}}
		}},
		{
			name: "an authorization beside the token, and in the configuration", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.BearerTokenFile = "/token"
				args.Prometheus.Headers = []config.NodeLoadHeader{{Name: "authorization", Value: "Basic password"}}
			},
			want: []string{"args.prometheus.headers[0].name: Forbidden: bearerTokenFile sets", "args.prometheus.headers[0].value: Forbidden: must not be in a configuration"},
		},
		{
			name: "other headers that say who may, in the configuration", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.BearerTokenFile = "/token"
				args.Prometheus.Headers = []config.NodeLoadHeader{{Name: "cookie", Value: "session=password"}, {Name: "Proxy-authorization", Value: "Basic password"}}
			},
			want: []string{"args.prometheus.headers[0].value: Forbidden: must not be in a configuration", "args.prometheus.headers[1].value: Forbidden: must not be in a configuration"},
		},
		{name: "those in files", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.Headers = []config.NodeLoadHeader{{Name: "Cookie", ValueFile: "/cookie"}, {Name: "Proxy-Authorization", ValueFile: "/proxy"}}
		}},
		{
			name: "the same header twice", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Headers = []config.NodeLoadHeader{{Name: "X-Tenant", Value: "a"}, {Name: "x-tenant", Value: "b"}}
			},
			want: []string{`args.prometheus.headers[1].name: Duplicate value: "X-Tenant"`},
		},
		{
			name: "a header without a value, and one with two", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Headers = []config.NodeLoadHeader{{Name: "A"}, {Name: "B", Value: "password", ValueFile: "/value"}, {Name: "C", ValueFile: "value"}}
			},
			want: []string{
				"args.prometheus.headers[0]: Required value: value or valueFile", "args.prometheus.headers[1].value: Forbidden: valueFile has the value",
				"args.prometheus.headers[2].valueFile: Invalid value: (not shown)",
			},
		},
		{
			name: "no names, and no values", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Headers = []config.NodeLoadHeader{{Value: "a"}, {Name: "X-Key: password", Value: "a"}, {Name: "A", Value: "password\r\nHost: b"}, {Name: "B", Value: "password\x7f"}}
			},
			want: []string{
				"args.prometheus.headers[0].name: Invalid value: (not shown)", "args.prometheus.headers[1].name: Invalid value: (not shown): must be 1 or more letters",
				"args.prometheus.headers[2].value: Invalid value: (not shown): must be one line", "args.prometheus.headers[3].value: Invalid value: (not shown): must be one line",
			},
		},

		{name: "as many matchers as there may be, with all operators", change: func(args *config.NodeLoadArgs) {
			args.Prometheus.Matchers = append(matchers(12),
				config.NodeLoadMatcher{Label: "a", Operator: "="}, config.NodeLoadMatcher{Label: "a", Operator: "!=", Value: "ä\"\n"},
				config.NodeLoadMatcher{Label: "_b", Operator: "=~", Value: "x.*|(?i)y"}, config.NodeLoadMatcher{Label: "_b", Operator: "!~", Value: "b"})
		}},
		{
			name: "a matcher more", change: func(args *config.NodeLoadArgs) { args.Prometheus.Matchers = matchers(17) },
			want: []string{"args.prometheus.matchers: Too many: 17: must have at most 16"},
		},
		{
			name: "labels, operators and values that PromQL does not have", change: func(args *config.NodeLoadArgs) {
				args.Prometheus.Matchers = []config.NodeLoadMatcher{
					{Label: "a-b", Operator: "=="}, {Label: "", Operator: "="}, {Label: "a\"}", Operator: "="}, {Label: "__name__", Operator: "="},
					{Label: "nodeload_term", Operator: "="}, {Label: "a", Operator: "=~", Value: "("}, {Label: "a", Operator: "!~", Value: "(?=a)"},
					{Label: "a", Operator: "=", Value: "("}, {Label: "a", Operator: "=", Value: "\xff"}, {Label: "a", Operator: "=~", Value: ")("},
				}
			},
			want: []string{
				`args.prometheus.matchers[0].label: Invalid value: "a-b": must be the name of a label in Prometheus`,
				`args.prometheus.matchers[0].operator: Unsupported value: "==": supported values: "=", "!=", "=~", "!~"`,
				`args.prometheus.matchers[1].label: Invalid value: ""`, `args.prometheus.matchers[2].label: Invalid value`,
				`args.prometheus.matchers[3].label: Invalid value: "__name__": must be a label that distinguishes clusters`,
				`args.prometheus.matchers[4].label: Invalid value: "nodeload_term": must be a label that distinguishes clusters`,
				`args.prometheus.matchers[5].value: Invalid value: "(": must be a regular expression of RE2: `,
				`args.prometheus.matchers[6].value: Invalid value: "(?=a)": must be a regular expression of RE2: `,
				`args.prometheus.matchers[8].value: Invalid value: "\xff": must be UTF-8`,
				`args.prometheus.matchers[9].value: Invalid value: ")(": must be a regular expression of RE2: `,
			},
		},

		{
			name: "a blank label", change: func(args *config.NodeLoadArgs) { args.NodeMatch.Label = " " },
			want: []string{`args.nodeMatch.label: Invalid value: " ": must be the name of a label in Prometheus`},
		},
		{
			name: "a label that begins with a digit", change: func(args *config.NodeLoadArgs) { args.NodeMatch.Label = "0n" },
			want: []string{"args.nodeMatch.label: Invalid value: "},
		},
		{
			name: "the label by which queries are told apart", change: func(args *config.NodeLoadArgs) { args.NodeMatch.Label = "nodeload_term" },
			want: []string{`args.nodeMatch.label: Invalid value: "nodeload_term": must be a label that distinguishes nodes`},
		},
		{
			name: "the name of the series", change: func(args *config.NodeLoadArgs) { args.NodeMatch.Label = "__name__" },
			want: []string{`args.nodeMatch.label: Invalid value: "__name__": must be a label that distinguishes nodes`},
		},

		{name: "a resource with a match of its own", change: func(args *config.NodeLoadArgs) {
			args.Resources[0].NodeMatch = &config.NodeLoadNodeMatch{Label: "Hostname", By: config.NodeLoadMatchHostname}
		}},
		{
			name: "a resource with a match that is wrong", change: func(args *config.NodeLoadArgs) {
				args.Resources[0].NodeMatch = &config.NodeLoadNodeMatch{Label: "a-b", By: "Address"}
			},
			want: []string{
				`args.resources[0].nodeMatch.label: Invalid value: "a-b": must be the name of a label in Prometheus`,
				`args.resources[0].nodeMatch.by: Unsupported value: "Address"`,
			},
		},

		{name: "the metrics API", change: func(args *config.NodeLoadArgs) { *args = *fromMetricsServer(nil) }},
		{
			name: "a source that there is not", change: func(args *config.NodeLoadArgs) { args.Source = "Metrics" },
			want: []string{`args.source: Unsupported value: "Metrics": supported values: "Prometheus", "MetricsServer"`},
		},
		{
			name: "the metrics API and Prometheus", change: func(args *config.NodeLoadArgs) {
				*args = *fromMetricsServer(func(args *config.NodeLoadArgs) { args.Prometheus.BearerTokenFile = "/token" })
			},
			want: []string{"args.prometheus: Forbidden: the source MetricsServer queries the scheduler's own API server"},
		},
		{
			name: "what the metrics API has not", change: func(args *config.NodeLoadArgs) {
				*args = *fromMetricsServer(func(args *config.NodeLoadArgs) {
					args.Resources = []config.NodeLoadResource{measured("gpu"), asked("cpu"), measured("memory")}
					args.Resources[1].Unit, args.Resources[1].Strategy = config.NodeLoadAbsolute, config.NodeLoadRisk
					args.Resources[2].PodQuery = "use"
				})
			},
			want: []string{
				`args.resources[0].name: Unsupported value: "gpu": supported values: "cpu", "memory"`,
				"args.resources[1].query: Forbidden: the source MetricsServer takes no queries",
				"args.resources[1].timestampQuery: Forbidden: the source MetricsServer takes no queries",
				`args.resources[1].strategy: Invalid value: "Risk": must be LeastUsed or TargetUtilization`,
				"args.resources[2].podQuery: Forbidden: the source MetricsServer takes no queries",
				`args.resources[0].unit: Invalid value: "Ratio": must be Absolute, which the source MetricsServer returns`,
				`args.resources[2].unit: Invalid value: "Ratio": must be Absolute, which the source MetricsServer returns`,
			},
		},

		{name: "as many resources as there may be", change: func(args *config.NodeLoadArgs) { args.Resources = resources(16) }},
		{
			name: "a resource more", change: func(args *config.NodeLoadArgs) { args.Resources = resources(17) },
			want: []string{"args.resources: Too many: 17: must have at most 16"},
		},
		{
			name: "no resource", change: func(args *config.NodeLoadArgs) { args.Resources = []config.NodeLoadResource{} },
			want: []string{"args.resources: Required value: 1 to 16 resources"},
		},
		{name: "all that are known", change: func(args *config.NodeLoadArgs) {
			args.Resources = []config.NodeLoadResource{measured("cpu"), measured("memory"), measured("network"), measured("diskIO"), measured("gpu")}
		}},
		{
			name: "the same resource twice", change: func(args *config.NodeLoadArgs) {
				args.Resources = []config.NodeLoadResource{measured("cpu"), measured("gpu"), measured("cpu")}
			},
			want: []string{`args.resources[2].name: Duplicate value: "cpu"`},
		},
		{name: "names", change: func(args *config.NodeLoadArgs) {
			args.Resources = []config.NodeLoadResource{asked("a"), asked("A-0"), asked("b" + strings.Repeat("1", 53))}
		}},
		{
			name: "no names", change: func(args *config.NodeLoadArgs) {
				args.Resources = []config.NodeLoadResource{asked(""), asked("0a"), asked("-a"), asked("a-"), asked("a_b"), asked("b" + strings.Repeat("1", 54)), asked("a\n")}
			},
			want: []string{
				`args.resources[0].name: Invalid value: "": must be 1 to 54 letters`, `args.resources[1].name: Invalid value: "0a"`, `args.resources[2].name: Invalid value: "-a"`,
				`args.resources[3].name: Invalid value: "a-"`, `args.resources[4].name: Invalid value: "a_b"`, `args.resources[5].name: Invalid value: "b111`,
				`args.resources[6].name: Invalid value: "a\n"`,
			},
		},
		{name: "a resource that only has a threshold, and one that is only looked at", change: func(args *config.NodeLoadArgs) {
			args.Resources = []config.NodeLoadResource{measured("cpu"), measured("memory")}
			args.Resources[0].Weight, args.Resources[0].Threshold, args.Resources[1].Weight = pointer.Int32(0), pointer.Int32(1), pointer.Int32(0)
		}},
		{
			name: "nothing counts", change: func(args *config.NodeLoadArgs) { args.Resources[0].Weight = pointer.Int32(0) },
			want: []string{"args.resources: Required value: at least one with a weight above 0 or a threshold"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expectErrors(t, validate(t, "NodeLoad", nodeLoad(tt.change)), tt.want)
		})
	}
}

func TestValidateAResourceOfNodeLoad(t *testing.T) {
	tests := []struct {
		name string
		// resource is measured("cpu") if it is nil.
		resource func() config.NodeLoadResource
		change   func(r *config.NodeLoadResource)
		want     []string
	}{
		{name: "the lowest numbers", change: func(r *config.NodeLoadResource) {
			r.Capacity, r.Window, r.Threshold, r.Weight, r.Target = quantity("1n"), lasting(10*time.Second), pointer.Int32(1), pointer.Int32(0), pointer.Int32(1)
			r.Margin, r.Sensitivity, r.Estimator.Factor = pointer.Float64(0), pointer.Float64(math.SmallestNonzeroFloat64), pointer.Int32(1)
		}},
		{name: "the highest numbers", change: func(r *config.NodeLoadResource) {
			r.Capacity, r.Window, r.Threshold, r.Weight, r.Target = quantity("1Ei"), lasting(time.Hour), pointer.Int32(100), pointer.Int32(100), pointer.Int32(99)
			r.Margin, r.Sensitivity, r.Estimator.Factor, r.Estimator.Default = pointer.Float64(10), pointer.Float64(10), pointer.Int32(1000), quantity("1Ei")
		}},
		{
			name: "numbers that are too low", change: func(r *config.NodeLoadResource) {
				r.Capacity, r.Window, r.Threshold, r.Weight, r.Target = quantity("0"), lasting(10*time.Second-1), pointer.Int32(0), pointer.Int32(-1), pointer.Int32(0)
				r.Margin, r.Sensitivity, r.Estimator.Factor, r.Estimator.Default = pointer.Float64(-0.01), pointer.Float64(0), pointer.Int32(0), quantity("-1m")
			},
			want: []string{
				`.capacity: Invalid value: "0": must be more than 0`, `.window: Invalid value: "9.999999999s": must be between 10s and 1h0m0s, inclusive`,
				".threshold: Invalid value: 0: must be between 1 and 100, inclusive", ".weight: Invalid value: -1: must be between 0 and 100, inclusive",
				".target: Invalid value: 0: must be between 1 and 99, inclusive", ".margin: Invalid value: -0.01: must be between 0 and 10, inclusive",
				".sensitivity: Invalid value: 0: must be more than 0 and at most 10", ".estimator.factor: Invalid value: 0: must be between 1 and 1000, inclusive",
				`.estimator.default: Invalid value: "-1m": must be at least 0`,
			},
		},
		{
			name: "numbers that are too high", change: func(r *config.NodeLoadResource) {
				r.Window, r.Threshold, r.Weight, r.Target = lasting(time.Hour+1), pointer.Int32(101), pointer.Int32(101), pointer.Int32(100)
				r.Margin, r.Sensitivity, r.Estimator.Factor = pointer.Float64(10.01), pointer.Float64(10.01), pointer.Int32(1001)
			},
			want: []string{
				".window: Invalid value", ".threshold: Invalid value: 101", ".weight: Invalid value: 101", ".target: Invalid value: 100", ".margin: Invalid value: 10.01",
				".sensitivity: Invalid value: 10.01", ".estimator.factor: Invalid value: 1001",
			},
		},
		{
			name: "not numbers", change: func(r *config.NodeLoadResource) {
				r.Margin, r.Sensitivity = pointer.Float64(math.NaN()), pointer.Float64(math.NaN())
			},
			want: []string{".margin: Invalid value: NaN", ".sensitivity: Invalid value: NaN"},
		},
		{
			name: "what there is no choice of", change: func(r *config.NodeLoadResource) { r.Unit, r.Strategy, r.Estimator.By = "ratio", "Least", "Limit" },
			want: []string{
				`.unit: Unsupported value: "ratio": supported values: "Ratio", "Percent", "Absolute"`,
				`.strategy: Unsupported value: "Least": supported values: "LeastUsed", "TargetUtilization", "Risk"`,
				`.estimator.by: Unsupported value: "Limit": supported values: "Requests", "Limits"`,
			},
		},
		{name: "Risk by the built-in queries", change: func(r *config.NodeLoadResource) { r.Strategy = config.NodeLoadRisk }},
		{
			name: "another unit than the built-in query's", change: func(r *config.NodeLoadResource) { r.Unit = config.NodeLoadPercent },
			want: []string{`.unit: Invalid value: "Percent": must be Ratio, which the built-in query of cpu returns`},
		},
		{
			name: "the age of a query that is not given", change: func(r *config.NodeLoadResource) { r.TimestampQuery = "time" },
			want: []string{".query: Required value: timestampQuery and deviationQuery refer to it"},
		},
		{
			name: "a resource that is not known", resource: func() config.NodeLoadResource { return measured("diskio") },
			want: []string{".query: Required value: only cpu, diskIO, gpu, memory, network have built-in ones"},
		},
		{name: "queries of its own, in any unit", resource: func() config.NodeLoadResource { return asked("cpu") }, change: func(r *config.NodeLoadResource) {
			r.Unit = config.NodeLoadAbsolute
		}},
		{
			name: "a query without its age", resource: func() config.NodeLoadResource { return asked("power") },
			change: func(r *config.NodeLoadResource) { r.TimestampQuery = "" },
			want:   []string{".timestampQuery: Required value: with query, the time of its newest raw samples"},
		},
		{
			name: "Risk without the deviation", resource: func() config.NodeLoadResource { return asked("cpu") },
			change: func(r *config.NodeLoadResource) { r.Strategy = config.NodeLoadRisk },
			want:   []string{".deviationQuery: Required value: the strategy Risk scores by the standard deviation of query"},
		},
		{name: "Risk with the deviation", resource: func() config.NodeLoadResource { return asked("power") }, change: func(r *config.NodeLoadResource) {
			r.Strategy, r.DeviationQuery = config.NodeLoadRisk, "deviation"
		}},
		{
			name: "blank queries", resource: func() config.NodeLoadResource { return asked("power") },
			change: func(r *config.NodeLoadResource) { r.Query, r.TimestampQuery, r.DeviationQuery = " ", "\n", "\t" },
			want: []string{
				`.query: Invalid value: " ": must not be blank`, `.timestampQuery: Invalid value: "\n": must not be blank`, `.deviationQuery: Invalid value: "\t": must not be blank`,
			},
		},
		{name: "huge pages and an annotation", change: func(r *config.NodeLoadResource) {
			r.Estimator.Resource, r.Estimator.Annotation = "hugepages-2Mi", "Example.com/use"
		}},
		{name: "a device", change: func(r *config.NodeLoadResource) { r.Estimator.Resource = "nvidia.com/gpu" }},
		{
			name: "resources that no pod asks for", change: func(r *config.NodeLoadResource) { r.Estimator.Resource, r.Estimator.Annotation = "CPU", "/use" },
			want: []string{
				`.estimator.resource: Unsupported value: "CPU": supported values: "cpu", "memory", "ephemeral-storage", "hugepages-<size>", "<prefix>/<name>"`,
				`.estimator.annotation: Invalid value: "/use"`,
			},
		},
		{
			name: "a device without a name", change: func(r *config.NodeLoadResource) { r.Estimator.Resource = "nvidia.com/gpu!" },
			want: []string{`.estimator.resource: Invalid value: "nvidia.com/gpu!"`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// The first resource is valid, so that there is one that counts.
			r := measured("cpu")
			if tt.resource != nil {
				r = tt.resource()
			}
			if tt.change != nil {
				tt.change(&r)
			}
			var want []string
			for _, text := range tt.want {
				want = append(want, "args.resources[1]"+text)
			}
			args := nodeLoad(func(args *config.NodeLoadArgs) { args.Resources = []config.NodeLoadResource{asked("first"), r} })
			expectErrors(t, validate(t, "NodeLoad", args), want)
		})
	}
}

// TestNoSecretIsInAnErrorOfAnEndpoint has a password in each place of a URL, and in what is none.
func TestNoSecretIsInAnErrorOfAnEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://user:PASSWORD@example.com":       "Forbidden: a user and a password in a URL are not kept secret",
		"https://PASSWORD@example.com":            "Forbidden: a user and a password in a URL are not kept secret",
		"https://example.com/?token=PASSWORD":     "Forbidden: must not have a query or a fragment",
		"https://example.com#PASSWORD":            "Forbidden: must not have a query or a fragment",
		"https://example.com/PASSWORD/api/v1/":    "Invalid value: (not shown): must end before /api/v1",
		"":                                        "Invalid value: (not shown): must be a URL with a host",
		"user:PASSWORD@example.com":               "Invalid value: (not shown): must be a URL with a host",
		"http:///PASSWORD":                        "Invalid value: (not shown): must be a URL with a host",
		"ftp://user:PASSWORD@example.com":         "Invalid value: (not shown): must be a URL with a host",
		"http://user:PASSWORD@example.com:port":   "Invalid value: (not shown): must be a URL with a host",
		"http://user:PASSWORD@example.com/%zz":    "Invalid value: (not shown): must be a URL with a host",
		"http://user:PASSWORD@example.com:65536":  "Invalid value: (not shown): must be a URL with a host",
		"http://user:PASSWORD@example.com\n:9090": "Invalid value: (not shown): must be a URL with a host",
	} {
		t.Run(endpoint, func(t *testing.T) {
			err := validate(t, "NodeLoad", nodeLoad(func(args *config.NodeLoadArgs) {
				args.Prometheus.Endpoints = append(args.Prometheus.Endpoints, endpoint)
			}))
			expectErrors(t, err, []string{"args.prometheus.endpoints[1]: " + want})
			if strings.Contains(err.Error(), "PASS") {
				t.Errorf("the error shows it: %v", err)
			}
		})
	}
}

// TestNoSecretIsInAnErrorOfAFileOrAHeader has secrets in the place of files, of a header's name, and in values.
func TestNoSecretIsInAnErrorOfAFileOrAHeader(t *testing.T) {
	err := validate(t, "NodeLoad", nodeLoad(func(args *config.NodeLoadArgs) {
		p := &args.Prometheus
		p.BearerTokenFile, p.TLS.CAFile, p.TLS.CertFile, p.TLS.KeyFile = "PASSWORD", "PASSWORD", "PASSWORD", "/PASSWORD\n"
		p.Headers = []config.NodeLoadHeader{
			{Name: "X-Key: PASSWORD", Value: "a"}, {Name: "Host", Value: "PASSWORD"}, {Name: "Authorization", Value: "PASSWORD"}, {Name: "X", Value: "PASSWORD\n"},
			{Name: "X", Value: "PASSWORD", ValueFile: "PASSWORD"},
		}
	}))
	if err == nil || strings.Count(err.Error(), "args.prometheus") != 12 || strings.Contains(err.Error(), "PASSWORD") {
		t.Errorf("got %v, want 12 errors that show no secret", err)
	}
}

// TestHeadersOfTheClientAreItsOwn is about each of them, however it is written.
func TestHeadersOfTheClientAreItsOwn(t *testing.T) {
	for _, name := range []string{
		"accept", "ACCEPT-ENCODING", "Connection", "content-encoding", "Content-Length", "content-type", "Expect", "host", "Keep-Alive", "Proxy-Connection", "TE",
		"Trailer", "transfer-encoding", "Upgrade",
	} {
		err := validate(t, "NodeLoad", nodeLoad(func(args *config.NodeLoadArgs) {
			args.Prometheus.Headers = []config.NodeLoadHeader{{Name: name, Value: "a"}}
		}))
		expectErrors(t, err, []string{"args.prometheus.headers[0].name: Forbidden: the client itself sets "})
	}
}
