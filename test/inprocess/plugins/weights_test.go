// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	listers "k8s.io/kubernetes/pkg/scheduler/framework/fake"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"kube-scheduler-fork/test/inprocess/decision"
)

type noNodes struct{}

func (noNodes) NodeInfos() framework.NodeInfoLister { return listers.NodeInfoLister{} }

// The weights are those of the framework, not of the configuration: with multiPoint, a plugin without a weight has 1.
func TestPageHasTheWeightsOfTheDefaultPlugins(t *testing.T) {
	decision.Quiet(t)
	sums, points := map[string]int32{}, map[string]int32{}
	for _, version := range []string{"v1beta3", "v1beta2"} {
		text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/%s\nkind: KubeSchedulerConfiguration\n", version)
		object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := fake.NewSimpleClientset()
		profile, err := frameworkruntime.NewFramework(frameworkplugins.NewInTreeRegistry(),
			&object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles[0],
			frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)),
			frameworkruntime.WithSnapshotSharedLister(noNodes{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, plugin := range profile.ListPlugins().Score.Enabled {
			sums[version] += plugin.Weight
			// It scores 0 without its feature gate.
			if plugin.Name != names.VolumeBinding {
				points[version] += 100 * plugin.Weight
			}
		}
	}
	content, err := os.ReadFile("../../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(strings.Join(strings.Fields(string(content)), " "), ",", "")
	found := regexp.MustCompile("(\\d+) (?:points )?in `v1beta3` and (\\d+) in `v1beta2`").FindAllString(page, -1)
	want := fmt.Sprintf("%d in `v1beta3` and %d in `v1beta2`", sums["v1beta3"], sums["v1beta2"])
	reach := fmt.Sprintf("%d points in `v1beta3` and %d in `v1beta2`", points["v1beta3"], points["v1beta2"])
	if got := strings.Join(found, "; "); got != strings.Join([]string{want, reach, want}, "; ") {
		t.Errorf("docs/plugins.md says %s; the framework has %s, %s", got, want, reach)
	}
}
