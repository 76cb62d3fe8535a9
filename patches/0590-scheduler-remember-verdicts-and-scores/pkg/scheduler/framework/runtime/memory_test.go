// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestMemoryIsBounded adds many kinds of pods, small and large, in clusters of all sizes.
func TestMemoryIsBounded(t *testing.T) {
	for _, test := range []struct{ nodes, containers, scores, want int }{
		{nodes: 10, containers: 1, scores: 5, want: maxKinds},
		{nodes: 5000, containers: 1, want: maxKinds},
		{nodes: 5000, containers: 1, scores: 5, want: 160},
		{nodes: 100000, containers: 1, scores: 5, want: 8},
		{nodes: 10, containers: 300, want: 104},
		{nodes: 2000000, containers: 1, want: 0},
	} {
		m := &memory{nodes: test.nodes, plugins: make([]localPlugin, 5)}
		m.forget()
		for i := 0; i < 3*maxKinds; i++ {
			pod := &v1.Pod{}
			for len(pod.Spec.Containers) < test.containers {
				pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "c", Image: "registry.example/image:tag"})
			}
			m.key = framework.AppendNumber(m.key[:0], int64(i))
			m.search++
			k := m.add(pod, 0)
			if k == nil {
				continue
			}
			for j, generation := range k.generations {
				if generation != 0 {
					t.Fatalf("%+v: a new kind knows node %d", test, j)
				}
			}
			k.generations[0] = 1
			k.scores = make([][]int16, test.scores)
			for place := range k.scores {
				m.addScores(k, place)
			}
			if m.kinds[string(m.key)] != k {
				t.Fatalf("%+v: the new kind gives way", test)
			}
		}
		sum := 0
		for _, k := range m.kinds {
			sum += k.bytes
		}
		if n := len(m.kinds); sum != m.bytes || sum > maxBytes || n > test.want || n < test.want*9/10 {
			t.Errorf("%+v: %d kinds with %d bytes, %d are counted", test, n, sum, m.bytes)
		}
	}
}
