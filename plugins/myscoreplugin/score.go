package myscoreplugin

import "k8s.io/kubernetes/pkg/scheduler/framework"

// score rates a label value by its place among the preferred ones. With n of them, the one at place i (from 0) scores
// 100 × (n - i) / n, rounded down: 100 for the first, 100/n for the last. A value not among them scores 0.
func score(value string, preferred []string) int64 {
	n := int64(len(preferred))
	for i := range preferred {
		if preferred[i] == value {
			return framework.MaxNodeScore * (n - int64(i)) / n
		}
	}
	return framework.MinNodeScore
}
