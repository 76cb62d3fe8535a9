// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/schedulerpod"
)

func TestOvercommittingPodsThatLoseTheirPluginAreCounted(t *testing.T) {
	tool := toolFor(t, stock)
	tool.node.cluster = &cluster{client: fake.NewSimpleClientset(
		overcommitting("a", "default-scheduler", "", overcommitResource), overcommitting("b", "default-scheduler", "n1", overcommitResource),
		overcommitting("c", "batch", "n1", overcommitResource), overcommitting("of-a-second-scheduler", "second", "", overcommitResource),
		overcommitting("ordinary", "default-scheduler", "", corev1.ResourceCPU))}
	const (
		enabled = "{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: NodeLoad}, {name: Overcommit}]}}}"
		batch   = "{schedulerName: batch, plugins: {filter: {enabled: [{name: Overcommit}]}}}"
	)
	for name, c := range map[string]struct{ before, after, want string }{
		"to a stock scheduler": {before: enabled + "," + batch, want: "3 pods request overcommit.scheduler/millicpu in a profile " +
			"without the plugin Overcommit, for example x/a: 1 without a node stay Pending, and 2 stay on their nodes until they end"},
		"only one profile has it":      {before: enabled + "," + batch, after: "{}," + batch, want: "2 pods request"},
		"no profile ever had it":       {want: "2 pods request"},
		"it stays":                     {before: enabled + "," + batch, after: enabled + "," + batch},
		"to the first configuration":   {after: enabled},
		"a profile that nobody serves": {after: "{schedulerName: other}, " + enabled},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := configWith(t, c.before), configWith(t, c.after)
			got, err := tool.node.cluster.withoutOvercommit(t.Context(), before, after)
			if err != nil || !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestCheckAndRollbackNameOvercommittingPods(t *testing.T) {
	swapped, err := Apply([]byte(stock), Swap{Image: "ours:1", Version: "v1", ConfigFolder: t.TempDir(), ConfigSHA256: strings.Repeat("0", 64)})
	if err != nil {
		t.Fatal(err)
	}
	before := describe(t, string(swapped.Manifest))
	put(t, filepath.Join(before.Swap.ConfigFolder, ConfigFileName), "profiles: [{plugins: {filter: {enabled: [{name: Overcommit}]}}}]")
	tool := toolFor(t, stock)
	waits := overcommitting("a", "default-scheduler", "", overcommitResource)
	tool.node.cluster = &cluster{client: fake.NewSimpleClientset(waits)}
	tool.sayPending(t.Context(), &before, []byte(stock))
	if said := tool.options.Output.(*strings.Builder).String(); !strings.Contains(said, "1 pods request "+overcommitResource) {
		t.Errorf("a rollback says %q", said)
	}
	var findings Findings
	tool.checkConfig(t.Context(), &findings, &plan{pod: &before, afterPod: podWith(t), accepted: &schedulerpod.Config{}}, Request{})
	if len(findings) != 1 || findings[0].Severity != Warning || !strings.Contains(findings[0].What, overcommitResource) {
		t.Errorf("check finds %+v", findings)
	}
}

// overcommitting returns a pod, on a node or waiting, whose second container requests a resource.
func overcommitting(name, scheduler, node string, of corev1.ResourceName) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}, Spec: corev1.PodSpec{
		SchedulerName: scheduler, NodeName: node, Containers: []corev1.Container{{}, {Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{of: resource.MustParse("1500")},
		}}},
	}}
}

// configWith returns a configuration with profiles; nil without any.
func configWith(t *testing.T, profiles string) *schedulerpod.Config {
	t.Helper()
	if profiles == "" {
		return nil
	}
	config, err := schedulerpod.ReadConfig([]byte("profiles: [" + profiles + "]"))
	if err != nil {
		t.Fatal(err)
	}
	return config
}
