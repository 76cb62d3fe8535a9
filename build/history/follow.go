// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"kube-scheduler-fork/build/nextstep"
)

const (
	// flushEvery is how much time a crash may lose.
	flushEvery = 2 * time.Second
	retryEvery = time.Second
	// unnoticed is how long client-go may not notice that a connection is dead: it asks after 30 s, and waits for 15 s.
	unnoticed = 45 * time.Second
)

// FollowOptions are those of Follow.
type FollowOptions struct {
	// File is written, or continued.
	File string
	// By is the version of this program.
	By     string
	Client dynamic.Interface
	// Prune leaves of a node or a pod what a history may have.
	Prune func(resource string, object map[string]any)
	// Hide is nil, or hides texts. Such a file is not continued: a new one begins.
	Hide *Hider
	// MaxSize is the size in bytes at which a new file begins.
	MaxSize int64
	// Messages receives what a person reads meanwhile.
	Messages io.Writer
}

// Follow writes what happens in a cluster to a file until the context ends. When a watch fails, the next lists give the
// differences and the gap.
func Follow(ctx context.Context, options FollowOptions) error {
	system, err := options.Client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return nextstep.With(err, "kubectl get namespace kube-system")
	}
	f := newFollower(options, string(system.GetUID()))
	if err := f.open(); err != nil {
		return err
	}
	for warned := -1; ctx.Err() == nil && f.err == nil; {
		lost := f.session(ctx)
		switch {
		case lost == nil || ctx.Err() != nil:
			continue
		case f.sessions == 0:
			_ = f.close() // The other error is the first.
			return nextstep.With(lost, "kubectl auth can-i watch pods --all-namespaces, and the same for list and for nodes, then the same command again")
		case warned != f.sessions:
			fmt.Fprintf(f.Messages, "warning: %v; it is tried again every second\n", lost)
			warned = f.sessions
		}
		if f.alive.IsZero() {
			f.alive = time.Now().Add(-unnoticed)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
	}
	return f.close()
}

// watched is a resource whose changes are known until a version.
type watched struct {
	dynamic.NamespaceableResourceInterface
	name, version string
	changes       watch.Interface
	began         time.Time
}

// session lists, and watches until a watch fails, or the file is full or cannot be written.
func (f *follower) session(ctx context.Context) error {
	began, objects := time.Now(), []map[string]any{}
	nodes, pods := &watched{name: "nodes"}, &watched{name: "pods"}
	for _, w := range []*watched{nodes, pods} {
		w.NamespaceableResourceInterface = f.Client.Resource(corev1.SchemeGroupVersion.WithResource(w.name))
		err := w.list(ctx, func(object map[string]any) {
			f.Prune(w.name, object)
			objects = append(objects, object)
		})
		if err != nil {
			return fmt.Errorf("%s cannot be listed: %w", w.name, err)
		}
	}
	f.replace(began, objects)
	for _, w := range []*watched{nodes, pods} {
		if err := w.watch(ctx); err != nil {
			return fmt.Errorf("%s cannot be watched: %w", w.name, err)
		}
		defer func() { w.changes.Stop() }()
	}
	f.sessions++
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	var lost error
	for lost == nil && f.err == nil {
		select {
		case event, open := <-nodes.changes.ResultChan():
			lost = f.receive(ctx, nodes, event, open)
		case event, open := <-pods.changes.ResultChan():
			lost = f.receive(ctx, pods, event, open)
		case <-ticker.C:
			if f.flush(); f.size >= f.limit {
				f.rotate()
				return nil
			}
		}
	}
	return lost
}

// list visits all objects.
func (w *watched) list(ctx context.Context, visit func(map[string]any)) error {
	for options := (metav1.ListOptions{Limit: 500}); ; {
		list, err := w.List(ctx, options)
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			visit(item.Object)
		}
		w.version, options.Continue = list.GetResourceVersion(), list.GetContinue()
		if options.Continue == "" {
			return nil
		}
	}
}

// watch begins to watch where the changes that are known end.
func (w *watched) watch(ctx context.Context) error {
	seconds := int64(300 + rand.Intn(300))
	changes, err := w.Watch(ctx, metav1.ListOptions{ResourceVersion: w.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err == nil {
		w.changes, w.began = changes, time.Now()
	}
	return err
}

// receive writes a change, or watches again after the end of the watch.
func (f *follower) receive(ctx context.Context, w *watched, event watch.Event, open bool) error {
	object, is := event.Object.(*unstructured.Unstructured)
	switch {
	case !open && time.Since(w.began) < retryEvery:
		return errors.New("the API server ends a watch at once")
	case !open:
		return w.watch(ctx)
	case event.Type == watch.Error:
		return apierrors.FromObject(event.Object)
	case !is:
		return nil
	}
	w.version, f.at = object.GetResourceVersion(), time.Now()
	if event.Type == watch.Bookmark {
		return nil
	}
	f.Prune(w.name, object.Object)
	key := keyOf(object.Object)
	if event.Type != watch.Deleted {
		f.see(object.Object)
	} else if known := f.pods[key]; known == nil || known.uid == string(object.GetUID()) {
		f.gone(key)
	}
	return nil
}
