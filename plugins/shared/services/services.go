// SPDX-License-Identifier: Apache-2.0

// Package services has the interfaces through which this project's kube-scheduler offers plugins more than upstream's
// framework.Handle: its queue, its secure port, and a part in --validate-config. A plugin opts in by implementing an
// interface. It must also work if nobody calls the methods: in a stock scheduler, in an extender, in a test.
package services

import (
	"context"
	"io"
	"net/http"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PodMover is a plugin that finds out, without an event of a cluster object, that pods which it rejected may fit now.
//
// The scheduler calls SetPodMover once for each profile's plugin, on a standby too, after it has created all plugins
// and before it schedules any pod. Goroutines that New started may run already, so the plugin guards the field. From
// then on the plugin may call move, from any goroutine but not within its own QueueSort. move takes pods from the
// unschedulable part of the queue and retries them at once or after their back-off: those that were rejected by a
// plugin whose EventsToRegister has such an event, and those that were rejected by no plugin. The event's label is
// counted in scheduler_queue_incoming_pods_total, so it must be one of a few constants. move iterates over all waiting
// pods and holds the queue's lock meanwhile, so it must not be called for every measurement. Pods whose scheduling
// cycle is running when move is called are retried too if they are rejected.
type PodMover interface {
	SetPodMover(move func(event framework.ClusterEvent))
}

// EndChecker is a plugin that registers the deletion of pods as an event, and can tell from the deleted pod whether a
// pod that it rejected may fit now. Pods end by the thousand, and each end that may help retries all pods that the
// plugin rejected.
//
// The scheduler calls EndHelps with the queue locked, so it must be fast, and must not call the queue. In doubt it
// returns true: a pod that is not retried waits for another event, or for the queue's flush after a minute.
type EndChecker interface {
	EndHelps(ended, pending *v1.Pod) bool
}

// Pager is a plugin that serves pages on the scheduler's secure port.
//
// The scheduler calls Pages once, before it serves. The keys are paths, such as "/plugin-name", which begin with a
// slash and are matched exactly. Only one page is served at a path, so the instances of a plugin, one for each profile
// that enables it, share a handler. The scheduler's own paths are never replaced.
//
// Requests have been authenticated, and authorised for the path and the method, like those to /metrics: a ClusterRole
// allows them as nonResourceURLs, with the verb "get" for GET. The handler must expect parallel requests, also on a
// standby and before the informers are synced.
type Pager interface {
	Pages() map[string]http.Handler
}

// SourceChecker is a plugin that reads from a server other than the cluster's API server, and can check that server
// before a scheduler depends on it.
//
// --validate-config calls CheckSources once for each profile's plugin if the whole configuration is valid. The
// informers of the plugin never start, and its client refuses requests. nodes are all nodes of the cluster, or nil if
// they are not known, which the caller reports. ctx has a deadline.
//
// The plugin writes its results to out, as lines. It returns its failures as an error, or as an aggregate of several.
// Each is printed as a warning, because a configuration stays valid while a source is down. Neither may contain
// secrets.
type SourceChecker interface {
	CheckSources(ctx context.Context, nodes []*v1.Node, out io.Writer) error
}
