// SPDX-License-Identifier: Apache-2.0

package overcommitting

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// container returns a container with requests and limits such as "cpu=1".
func container(requests, limits string) v1.Container {
	list := func(text string) v1.ResourceList {
		amounts := v1.ResourceList{}
		for _, field := range strings.Fields(text) {
			pair := strings.SplitN(field, "=", 2)
			if pair[0] == "asks" {
				pair[0] = string(config.OvercommitResource)
			}
			amounts[v1.ResourceName(pair[0])] = resource.MustParse(pair[1])
		}
		return amounts
	}
	return v1.Container{Resources: v1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}}
}

func TestMistake(t *testing.T) {
	const requests, limits = "asks=1500 cpu=0 memory=1Gi", "asks=1500 cpu=1500m memory=1Gi"
	right := container(requests, limits)
	for name, test := range map[string]struct {
		init, main []v1.Container
		asked      int64
		want       string
	}{
		"an ordinary pod":             {main: []v1.Container{container("cpu=1", "")}},
		"as it should be":             {main: []v1.Container{right}, asked: 1500},
		"two containers":              {main: []v1.Container{right, right}, asked: 3000},
		"a container that asks not":   {main: []v1.Container{right, container("memory=1Gi", "")}, asked: 1500},
		"0 of it":                     {main: []v1.Container{container("asks=0 cpu=1", "asks=0")}},
		"a CPU request":               {main: []v1.Container{container("asks=1500 cpu=1m memory=1Gi", limits)}, asked: 1500, want: "requests CPU"},
		"another container's request": {main: []v1.Container{right, container("cpu=100m", "")}, asked: 1500, want: "requests CPU"},
		"an init container's request": {init: []v1.Container{container("cpu=100m", "")}, main: []v1.Container{right}, asked: 1500, want: "requests CPU"},
		"an init container asks":      {init: []v1.Container{right}, main: []v1.Container{container("", "")}, want: "in an init container"},
		"no CPU limit":                {main: []v1.Container{container(requests, "asks=1500")}, asked: 1500, want: "without a CPU limit"},
		"a CPU limit that is lower":   {main: []v1.Container{container(requests, "asks=1500 cpu=1499m")}, asked: 1500, want: "CPU limit is lower"},
		"no memory request":           {main: []v1.Container{container("asks=1500 cpu=0", limits)}, asked: 1500, want: "without a memory request"},
		"a sum that overflows": {main: []v1.Container{
			container("asks=9223372036854775000 cpu=0 memory=1", ""), container("asks=9223372036854775000 cpu=0 memory=1", ""),
		}, asked: 2e9, want: "more than a million cores"},
		"the second container is wrong": {main: []v1.Container{right, container("asks=1 cpu=0 memory=1", "asks=1")}, asked: 1501, want: "without a CPU limit"},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{InitContainers: test.init, Containers: test.main}}
		if got := Asked(pod); got != test.asked {
			t.Errorf("%s: asks for %d, want %d", name, got, test.asked)
		}
		if got, want := Yields(pod), test.asked > 0 && test.want == ""; got != want {
			t.Errorf("%s: yields: %t, want %t", name, got, want)
		}
		if got := Mistake(pod); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
