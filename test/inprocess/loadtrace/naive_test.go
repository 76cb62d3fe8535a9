// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"context"
	"fmt"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// naive is the simplest plugin: it queries Prometheus whenever a node
// is scored for a pod. It ignores pods that are too new to be measured.
type naive struct {
	api prometheusv1.API
}

const naiveName = "Naive"

func newNaive(api prometheusv1.API) frameworkruntime.PluginFactory {
	return func(runtime.Object, framework.Handle) (framework.Plugin, error) { return &naive{api: api}, nil }
}

func (*naive) Name() string { return naiveName }

// Score returns 100 for an idle node and 0 for a full one.
func (n *naive) Score(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, node string) (int64, *framework.Status) {
	query := fmt.Sprintf(`1 - avg(rate(node_cpu_seconds_total{mode="idle",instance="%s"}[%s]))`,
		address(machine{name: node}), model.Duration(window))
	answer, _, err := n.api.Query(ctx, query, time.Now())
	if err != nil {
		return 0, framework.AsStatus(err)
	}
	vector, ok := answer.(model.Vector)
	if !ok || len(vector) != 1 {
		return 0, framework.NewStatus(framework.Error, fmt.Sprintf("no load of node %s", node))
	}
	return int64(100 * (1 - min(1, max(0, float64(vector[0].Value))))), nil
}

func (*naive) ScoreExtensions() framework.ScoreExtensions { return nil }
