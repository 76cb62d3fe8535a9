// SPDX-License-Identifier: Apache-2.0

// Package unsynced waits for the informers of a scheduler, and reports those that do not sync: a scheduler that waits for
// one is healthy, has no lease and schedules nothing.
package unsynced

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	storagev1beta1 "k8s.io/api/storage/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/capacities"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
	"k8s.io/utils/clock"
)

const (
	// period is the time between two reports, and before the first one.
	period = time.Minute
	// answerTime limits the requests of a report.
	answerTime = 30 * time.Second
)

var (
	gauge = pluginmetrics.NewGaugeVec("informer_unsynced", "1 for each resource for which the scheduler has waited a minute or longer before it schedules.", "resource")
	// oldest is the oldest API server for which this scheduler is made.
	oldest = version.MustParseGeneric("1.23.0")
)

// Wait waits for the informers that two factories have started. Dynamic can be nil.
type Wait struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Dynamic   dynamicinformer.DynamicSharedInformerFactory
	// Timeout is how long the API server may refuse a resource. 0 is forever.
	Timeout time.Duration
	Clock   clock.WithTicker

	refusedSince map[schema.GroupVersionResource]time.Time
}

// Until returns when all informers have synced or the context is done. It returns an error when the API server has
// refused a resource in all reports for Timeout.
func (w Wait) Until(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go logOlder(w.Client)
	go func() {
		defer cancel()
		w.sync(ctx.Done())
	}()
	w.refusedSince = map[schema.GroupVersionResource]time.Time{}
	defer gauge.Reset()
	ticker := w.Clock.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			if err := w.report(ctx); err != nil {
				return err
			}
		}
	}
}

// sync waits until the informers have synced or stop is closed, and returns those that have not synced.
func (w *Wait) sync(stop <-chan struct{}) (unsynced []schema.GroupVersionResource) {
	for of, synced := range w.Informers.WaitForCacheSync(stop) {
		if !synced {
			unsynced = append(unsynced, resourceOf(reflect.New(of.Elem()).Interface()))
		}
	}
	if w.Dynamic != nil {
		for resource, synced := range w.Dynamic.WaitForCacheSync(stop) {
			if !synced {
				unsynced = append(unsynced, resource)
			}
		}
	}
	return unsynced
}

// resourceOf returns the resource of an object by which a factory knows an informer. One that is not of client-go has a
// method for it.
func resourceOf(object interface{}) schema.GroupVersionResource {
	if named, ok := object.(interface {
		Resource() schema.GroupVersionResource
	}); ok {
		return named.Resource()
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object.(runtime.Object))
	if err != nil {
		return schema.GroupVersionResource{Resource: fmt.Sprintf("%T", object)}
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return resource
}

// report logs a sentence for each informer that has not synced, and returns it if it is time to exit.
func (w *Wait) report(all context.Context) error {
	ctx, cancel := context.WithTimeout(all, answerTime)
	defer cancel()
	closed := make(chan struct{})
	close(closed)
	gauge.Reset()
	server := w.serverVersion(ctx)
	for _, resource := range w.sync(closed) {
		name := resource.GroupResource().String()
		gauge.WithLabelValues(name).Set(1)
		versions := []schema.GroupVersion{resource.GroupVersion()}
		if resource == storagev1beta1.SchemeGroupVersion.WithResource(capacities.Resource) {
			versions = capacities.Versions
		}
		answer := w.ask(ctx, resource.Resource, versions)
		answered := "200 OK"
		if answer != nil {
			answered = answer.Error()
		}
		sentence := fmt.Errorf("%s cannot be read in %v, so nothing is scheduled: a LIST from kube-apiserver %s ends with %q; next: %s",
			name, versions, server, answered, next(resource, answer))
		if all.Err() != nil {
			return nil
		}
		klog.ErrorS(sentence, "An informer has not synced", "resource", name)
		since, before := w.refusedSince[resource]
		switch {
		case !refuses(answer):
			delete(w.refusedSince, resource)
		case !before:
			w.refusedSince[resource] = w.Clock.Now()
		case w.Timeout > 0 && w.Clock.Since(since) >= w.Timeout:
			return sentence
		}
	}
	return nil
}

// ask lists one object of each version until one is served, and returns the last answer.
func (w *Wait) ask(ctx context.Context, resource string, versions []schema.GroupVersion) (answer error) {
	for _, version := range versions {
		path := "/apis/" + version.String()
		if version.Group == "" {
			path = "/api/" + version.Version
		}
		answer = w.Client.CoreV1().RESTClient().Get().AbsPath(path, resource).Param("limit", "1").MaxRetries(0).Do(ctx).Error()
		if answer == nil {
			return nil
		}
	}
	return answer
}

// refuses reports whether an answer is one that the server gives again until something changes.
func refuses(answer error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(answer, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}

// next returns what a person can do after an answer.
func next(resource schema.GroupVersionResource, answer error) string {
	switch {
	case answer == nil:
		return "look for the error of its reflector in this log"
	case apierrors.IsNotFound(answer) && resource.Resource == capacities.Resource:
		return "serve it, or start kube-scheduler with --feature-gates=CSIStorageCapacity=false"
	case apierrors.IsNotFound(answer):
		return "serve it (a CustomResourceDefinition, or --runtime-config of kube-apiserver), or disable the plugins that read it"
	case apierrors.IsForbidden(answer):
		return fmt.Sprintf("give this scheduler's user a ClusterRole with the rule {apiGroups: [%q], resources: [%q], verbs: [get, list, watch]}", resource.Group, resource.Resource)
	case apierrors.IsUnauthorized(answer):
		return "renew the credentials in this scheduler's kubeconfig"
	case refuses(answer):
		return "look for the request in the log of kube-apiserver"
	}
	return "check kube-apiserver, and its address in this scheduler's kubeconfig"
}

// serverVersion returns the version of the API server, or that it is not known.
func (w *Wait) serverVersion(ctx context.Context) string {
	body, err := w.Client.CoreV1().RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	info := apiversion.Info{}
	if err != nil || json.Unmarshal(body, &info) != nil || info.GitVersion == "" {
		return "of an unknown version"
	}
	return info.GitVersion
}

// logOlder logs a line if the API server is older than this scheduler. Without an answer it logs nothing.
func logOlder(client kubernetes.Interface) {
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return
	}
	if server, err := version.ParseGeneric(info.GitVersion); err == nil && server.LessThan(oldest) {
		klog.InfoS("The API server is older than this scheduler: not supported", "apiServer", info.GitVersion)
	}
}
