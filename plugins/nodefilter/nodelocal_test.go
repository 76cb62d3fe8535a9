// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest/nodelocal"
	"k8s.io/utils/pointer"
)

// TestNodeLocalKey has a share for the pods of one application, which do not qualify.
func TestNodeLocalKey(t *testing.T) {
	args := &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.NodeFilterRule{
		{Name: "deny", Action: config.FilterDeny, NodeSelector: labelled("disk", "ssd"), Namespaces: []string{"team-1"}},
		{Name: "allow", Action: config.FilterAllow, NodeNames: []string{"node-1?"}, PodSelector: labelled("tier", "db")},
		{Name: "prefer", Action: config.FilterPrefer, NodeSelector: labelled("zone", "a"), PodSelector: labelled("tier", "web"), Weight: 3},
		{Name: "prefer-more", Action: config.FilterPrefer, NodeSelector: labelled("disk", "ssd"), Weight: 1},
		{Name: "share", Action: config.FilterShare, NodeSelector: labelled("zone", "a"), PodSelector: labelled("app", "db"),
			MaxPercent: pointer.Int32(50), WhenUnsatisfiable: v1.DoNotSchedule},
	}}
	nodelocal.Test(t, New, args, "metadata.namespace", "metadata.labels")
	sharing, pod := plugintest.New(t, New, t.Name(), args, nil).(*preferring), web("new")
	pod.Labels["app"] = "db"
	if _, qualifies := sharing.NodeLocalKey(pod, nil); qualifies {
		t.Error("a pod that a share concerns qualifies")
	}
	plugin := mustNew(t, "key", &config.NodeFilterArgs{Rules: denyOthersNodes(), DefaultAction: config.FilterAllow})
	plugin.PreFilter(context.Background(), framework.NewCycleState(), pod)
	key := make([]byte, 0, 100)
	plugintest.ExpectAllocations(t, "NodeLocalKey after PreFilter", 0, func() { plugin.NodeLocalKey(pod, key) })
}
