// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kube-scheduler-fork/build/schedulerpod"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestOvercommittingPodsThatLoseTheirPluginAreCounted(t *testing.T) {
	c := &Cluster{Client: fake.NewSimpleClientset(
		swaptest.Overcommitting("a", "default-scheduler", "", OvercommitResource), swaptest.Overcommitting("b", "default-scheduler", "n1", OvercommitResource),
		swaptest.Overcommitting("c", "batch", "n1", OvercommitResource), swaptest.Overcommitting("of-a-second-scheduler", "second", "", OvercommitResource),
		swaptest.Overcommitting("ordinary", "default-scheduler", "", corev1.ResourceCPU))}
	const (
		enabled = "{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: NodeLoad}, {name: Overcommit}]}}}"
		batch   = "{schedulerName: batch, plugins: {filter: {enabled: [{name: Overcommit}]}}}"
	)
	for name, tt := range map[string]struct{ before, after, want string }{
		"to a stock scheduler": {before: enabled + "," + batch, want: "3 pods request overcommit.scheduler/millicpu in a profile " +
			"without the plugin Overcommit, for example x/a: 1 without a node stay Pending, and 2 stay on their nodes until they end"},
		"only one profile has it":      {before: enabled + "," + batch, after: "{}," + batch, want: "2 pods request"},
		"no profile ever had it":       {want: "2 pods request"},
		"it stays":                     {before: enabled + "," + batch, after: enabled + "," + batch},
		"to the first configuration":   {after: enabled},
		"a profile that nobody serves": {after: "{schedulerName: other}, " + enabled},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := configWith(t, tt.before), configWith(t, tt.after)
			got, err := c.WithoutOvercommit(t.Context(), before, after)
			if err != nil || !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
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
