#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The latency histograms of a scheduler of 1.36 and of 1.37, as one job of Prometheus stores them.
#
# Guess: Kubernetes 1.37 adds native histograms next to the classic ones (the gate NativeHistograms documents both
# formats), and curl shows all _bucket series on /metrics. So dashboards and alerts over _bucket go on through an
# upgrade, whatever Prometheus is told about native histograms.
# Really: with scrape_native_histograms: true Prometheus drops the classic part of every histogram that has a native
# one: _bucket, _count and _sum of a scheduler of 1.37 do not exist, and an alert such as
# histogram_quantile(0.99, sum by (le) (rate(x_bucket[5m]))) > 1 cannot fire. During an upgrade it still counts the
# schedulers of 1.36 in the same job, so nothing looks empty. The text format, which curl gets, has no native part and
# shows nothing of this.
# always_scrape_classic_histograms: true keeps both; --feature-gates=NativeHistograms=false is the way back.
# Versions: k8s.io/component-base v0.37.2 (gate: alpha in 1.36, beta and on in 1.37), Prometheus 3.16.0.
# Source: k8s.io/component-base metrics/features/kube_features.go and metrics/opts.go (toPromHistogramOpts);
# github.com/prometheus/prometheus scrape/scrape.go (how the settings become ParserOptions),
# model/textparse/protobufparse.go.
#
# Needs Go 1.26.7 or newer and a Go module proxy. Exit: 0 as described; 1 something has changed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module finding

go 1.26.7

require (
	github.com/prometheus/prometheus v0.316.0
	k8s.io/apimachinery v0.37.2
	k8s.io/component-base v0.37.2
)
MOD

cat > main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"sort"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics"
	metricsfeatures "k8s.io/component-base/metrics/features"
)

const (
	text     = "text/plain;version=0.0.4"
	protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// component returns a registry with one observed histogram, with the default gates of a release of Kubernetes.
func component(release string) metrics.KubeRegistry {
	gates := featuregate.NewVersionedFeatureGate(version.MustParse(release))
	if err := metricsfeatures.AddFeatureGates(gates); err != nil {
		panic(err)
	}
	metricsfeatures.ApplyFeatureGates(gates)
	registry := metrics.NewKubeRegistry()
	latency := metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "attempt_seconds", Help: "Latency.", Buckets: []float64{0.1, 1}, StabilityLevel: metrics.ALPHA,
	})
	registry.MustRegister(latency)
	latency.Observe(0.5)
	return registry
}

// stored returns the names of the series that Prometheus makes of a scrape.
func stored(registry metrics.KubeRegistry, accept string, options textparse.ParserOptions) []string {
	request, answer := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
	request.Header.Set("Accept", accept)
	metrics.HandlerFor(registry, metrics.HandlerOpts{}).ServeHTTP(answer, request)
	parser, err := textparse.New(answer.Body.Bytes(), answer.Header().Get("Content-Type"), nil, options)
	if err != nil {
		panic(err)
	}
	found := map[string]bool{}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			panic(err)
		}
		if entry == textparse.EntrySeries || entry == textparse.EntryHistogram {
			var series labels.Labels
			parser.Labels(&series)
			name := series.Get(labels.MetricName)
			if entry == textparse.EntryHistogram {
				parser.Histogram() // as a scrape does; the parser returns the classic part only after it
				name += " (native)"
			}
			found[name] = true
		}
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func main() {
	for _, release := range []string{"1.36", "1.37"} {
		registry := component(release)
		fmt.Println(release, "curl:", stored(registry, text, textparse.ParserOptions{}))
		fmt.Println(release, "default:", stored(registry, text, textparse.ParserOptions{IgnoreNativeHistograms: true}))
		fmt.Println(release, "scrape_native_histograms:", stored(registry, protobuf, textparse.ParserOptions{}))
		fmt.Println(release, "and always_scrape_classic_histograms:",
			stored(registry, protobuf, textparse.ParserOptions{KeepClassicOnClassicAndNativeHistograms: true}))
	}
}
GO

cat > expected <<'TXT'
1.36 curl: [attempt_seconds_bucket attempt_seconds_count attempt_seconds_sum]
1.36 default: [attempt_seconds_bucket attempt_seconds_count attempt_seconds_sum]
1.36 scrape_native_histograms: [attempt_seconds_bucket attempt_seconds_count attempt_seconds_sum]
1.36 and always_scrape_classic_histograms: [attempt_seconds_bucket attempt_seconds_count attempt_seconds_sum]
1.37 curl: [attempt_seconds_bucket attempt_seconds_count attempt_seconds_sum]
1.37 default: [attempt_seconds_bucket attempt_seconds_count attempt_seconds_sum]
1.37 scrape_native_histograms: [attempt_seconds (native)]
1.37 and always_scrape_classic_histograms: [attempt_seconds (native) attempt_seconds_bucket attempt_seconds_count attempt_seconds_sum]
TXT

go run . > output 2> log || { cat log; exit 1; }
go list -m k8s.io/component-base github.com/prometheus/prometheus
cat output
diff -u expected output || { echo "Prometheus stores the histograms of 1.37 in another way now" >&2; exit 1; }
