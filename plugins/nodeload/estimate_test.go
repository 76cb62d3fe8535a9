// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/pointer"
)

// list returns a list with one resource; nil for an empty amount.
func list(name v1.ResourceName, amount string) v1.ResourceList {
	if amount == "" {
		return nil
	}
	return v1.ResourceList{name: apiresource.MustParse(amount)}
}

func parsed(amount string) *apiresource.Quantity {
	quantity := apiresource.MustParse(amount)
	return &quantity
}

func TestEstimate(t *testing.T) {
	cpu := config.NodeLoadEstimator{Resource: v1.ResourceCPU, Factor: pointer.Int32(85), Default: parsed("250m"), Annotation: "example.com/cpu"}
	memory := config.NodeLoadEstimator{Resource: v1.ResourceMemory, Factor: pointer.Int32(70), Default: parsed("200M")}
	gpu := config.NodeLoadEstimator{Resource: "nvidia.com/gpu", Factor: pointer.Int32(100), Default: parsed("0")}
	limits := cpu
	limits.By = config.NodeLoadEstimateLimits
	network := config.NodeLoadEstimator{Factor: pointer.Int32(100), Default: parsed("0"), Annotation: "example.com/bandwidth"}
	type amounts struct{ request, limit string }
	for _, test := range []struct {
		name        string
		estimator   config.NodeLoadEstimator
		annotations map[string]string
		containers  []amounts
		want        float64
		overhead    string
	}{
		{"the request counts, however high the limit: 500m x 85 %", cpu, nil, []amounts{{"500m", "16"}}, 0.425, ""},
		{"only a limit is requested too: 2 x 85 %", cpu, nil, []amounts{{"", "2"}}, 1.7, ""},
		{"nothing requested, however high the limit", cpu, nil, []amounts{{"0", "16"}}, 0.25, ""},
		{"nothing requested, and the limit is lower than the default", cpu, nil, []amounts{{"0", "100m"}}, 0.1, ""},
		{"by limits, 2 x 85 %", limits, nil, []amounts{{"1", "2"}}, 1.7, ""},
		{"5m x 85 % = 4.25m, rounded", cpu, nil, []amounts{{"5m", ""}}, 0.004, ""},
		{"nothing declared", cpu, nil, []amounts{{"", ""}}, 0.25, ""},
		{"850m + 250m", cpu, nil, []amounts{{"1", ""}, {"", ""}}, 1.1, ""},
		{"no more than the limit of 1", config.NodeLoadEstimator{Resource: v1.ResourceCPU, Factor: pointer.Int32(300), Default: parsed("0")}, nil, []amounts{{"1", "1"}}, 1, ""},
		{"without a limit there is no bound: 1 x 300 %", config.NodeLoadEstimator{Resource: v1.ResourceCPU, Factor: pointer.Int32(300), Default: parsed("0")}, nil, []amounts{{"1", ""}}, 3, ""},
		{"1000 bytes x 70 %", memory, nil, []amounts{{"1000", ""}}, 700, ""},
		{"nothing declared", memory, nil, []amounts{{"", ""}}, 200e6, ""},
		{"two of three devices", gpu, nil, []amounts{{"2", "2"}, {"", ""}}, 2, ""},
		{"no device asked for", gpu, nil, []amounts{{"", ""}}, 0, ""},
		{"nothing is known", network, nil, []amounts{{"", ""}}, 0, ""},
		{"the annotation says it", network, map[string]string{"example.com/bandwidth": "10M"}, []amounts{{"", ""}}, 10e6, ""},
		{"the annotation counts more", cpu, map[string]string{"example.com/cpu": "1500m"}, []amounts{{"4", ""}}, 1.5, ""},
		{"the annotation says none", cpu, map[string]string{"example.com/cpu": "0"}, []amounts{{"4", ""}}, 0, ""},
		{"700 bytes + 100 of overhead", memory, nil, []amounts{{"1000", ""}}, 800, "100"},
		{"the annotation is no quantity", cpu, map[string]string{"example.com/cpu": "lots"}, []amounts{{"1", ""}}, 0.85, ""},
	} {
		t.Run(string(test.estimator.Resource)+": "+test.name, func(t *testing.T) {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
			for _, c := range test.containers {
				pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Resources: v1.ResourceRequirements{
					Requests: list(test.estimator.Resource, c.request), Limits: list(test.estimator.Resource, c.limit),
				}})
			}
			pod.Spec.Overhead = list(test.estimator.Resource, test.overhead)
			e := newEstimator(test.estimator)
			if got := e.estimate(pod, 1); math.Abs(got-test.want) > 1e-9*(1+test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
