// SPDX-License-Identifier: Apache-2.0

package loadvariationriskbalancing

import (
	"testing"

	pluginConfig "sigs.k8s.io/scheduler-plugins/apis/config"
)

// TestNewCollectorWithInvalidProvider uses an address that is not a URL.
func TestNewCollectorWithInvalidProvider(t *testing.T) {
	args := &pluginConfig.LoadVariationRiskBalancingArgs{
		MetricProvider: pluginConfig.MetricProviderSpec{Type: pluginConfig.Prometheus, Address: "http://[::1"},
	}
	if _, err := newCollector(args); err == nil {
		t.Error("got no error")
	}
}
