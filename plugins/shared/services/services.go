// SPDX-License-Identifier: Apache-2.0

// Package services says what this project's kube-scheduler offers to plugins beside upstream's framework.Handle: its
// queue, its secure port, and a part in --validate-config. It is no plugin. A plugin asks by having the methods, and
// must do without the service where it is not offered: in a stock scheduler, in an extender, in a test.
package services

import (
	"context"
	"io"
	"net/http"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PodMover is a plugin that learns by itself, from no object of the cluster, that pods which it rejected may fit now.
//
// The scheduler calls SetPodMover once for each profile's plugin, after all plugins have been made and before any pod
// is scheduled, on a standby too; New may have started goroutines that run already, so the plugin guards the field.
// From then on the plugin may call move, from any goroutine except from within its own QueueSort. It moves the pods
// that were rejected by some plugin whose EventsToRegister has such an event, or by no plugin in particular, out of the
// pods that wait for an event, to be tried at once or when their back-off is over. The event's label is counted in
// scheduler_queue_incoming_pods_total: it must be one of a few constants. move looks at every waiting pod and holds the
// queue's lock meanwhile: it is for changes, not for every measurement. Pods that are being scheduled when move is
// called are tried again, too, should they be rejected.
type PodMover interface {
	SetPodMover(move func(event framework.ClusterEvent))
}

// Pager is a plugin with pages on the scheduler's secure port, for people and for tools.
//
// The scheduler calls Pages once, before it serves. The keys are paths, such as "/plugin-name", which begin with a
// slash and are matched exactly. Of several pages with the same path one is served: the instances of a plugin, of which
// there is one for each profile that enables it, share a handler that shows them all. A path of the scheduler's own is
// never replaced.
//
// Requests have been authenticated, and authorised for the path and the method, as those to /metrics are: a ClusterRole
// allows them as nonResourceURLs, with the verb "get" for GET. They come several at once, before the informers are
// synced and on a standby, too.
type Pager interface {
	Pages() map[string]http.Handler
}

// SourceChecker is a plugin that asks a server other than the cluster's API server, and can tell people how that goes
// before a scheduler depends on it.
//
// --validate-config calls CheckSources once for each profile's plugin, after the whole configuration proved valid, on a
// plugin whose informers never start and whose client refuses requests. nodes are all nodes of the cluster; nil if they
// cannot be had, of which the caller has told already. ctx ends when it takes too long.
//
// The plugin writes lines to out that say what it found. What failed it returns as an error, several as an aggregate:
// each is printed as a warning, because a valid configuration stays so while a source is down. Neither may hold
// secrets.
type SourceChecker interface {
	CheckSources(ctx context.Context, nodes []*v1.Node, out io.Writer) error
}
