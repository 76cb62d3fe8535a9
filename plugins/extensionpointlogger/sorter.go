// SPDX-License-Identifier: Apache-2.0

package extensionpointlogger

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
)

// sorter is the plugin with the QueueSort extension point. It is a separate type because multiPoint enables a plugin at
// all points that its type implements: otherwise each profile with an ExtensionPointLogger would have two queue sort
// plugins and could not start.
type sorter struct {
	*ExtensionPointLogger
	order queuesort.PrioritySort
}

var _ framework.QueueSortPlugin = &sorter{}

// Less orders pods like the default queue sort plugin. The queue is locked while it runs.
func (pl *sorter) Less(first, second *framework.QueuedPodInfo) bool {
	pl.log.writeOther("QueueSort", cycle{logged: pl.log.selects(first.Pod)}, first.Pod, second.Pod, "")
	return pl.order.Less(first, second)
}
