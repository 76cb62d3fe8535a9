// SPDX-License-Identifier: Apache-2.0

// Package podclient makes the client with which the informer of pods reads them with their later fields.
package podclient

import (
	"context"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// New returns the client with other lists and watches of pods: those look for the fields of later releases, unless the
// API server is of 1.23 or older. config is the one of which the client was made.
func New(client kubernetes.Interface, config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &v1.SchemeGroupVersion
	s := &servers{discovery: client.Discovery()}
	config.NegotiatedSerializer = serializer{scheme.Codecs.WithoutConversion(), s}
	ofClient, ok := client.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok {
		return client, nil
	}
	// Both share the connections, the user agent and the limit of requests.
	config.RateLimiter = ofClient.GetRateLimiter()
	reading, err := rest.RESTClientForConfigAndClient(config, ofClient.Client)
	if err != nil {
		return nil, err
	}
	return &clientset{client, &core{client.CoreV1(), corev1.New(reading), s}}, nil
}

type clientset struct {
	kubernetes.Interface
	core corev1.CoreV1Interface
}

func (c *clientset) CoreV1() corev1.CoreV1Interface { return c.core }

type core struct {
	corev1.CoreV1Interface
	reading corev1.PodsGetter
	servers *servers
}

func (c *core) Pods(namespace string) corev1.PodInterface {
	return &pods{c.reading.Pods(namespace), c.servers}
}

type pods struct {
	corev1.PodInterface
	*servers
}

func (p *pods) List(ctx context.Context, options metav1.ListOptions) (*v1.PodList, error) {
	if options.Continue == "" {
		p.ask()
		atomic.StoreInt32(&p.listed, atomic.LoadInt32(&p.known))
	}
	return p.PodInterface.List(ctx, options)
}

func (p *pods) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	p.ask()
	if p.newer() && atomic.LoadInt32(&p.listed) == older {
		return nil, apierrors.NewResourceExpired("the API server was upgraded: all pods are listed again to find the fields of its release")
	}
	return p.PodInterface.Watch(ctx, options)
}

// These are what is known of the API servers.
const (
	unknown = int32(iota)
	older   // not newer than 1.23
	newer
)

var firstLater = version.MustParseGeneric("1.24")

// servers knows whether an API server may send later fields.
type servers struct {
	discovery discovery.ServerVersionInterface
	// known is the state, and listed the one at the last list.
	known, listed int32
}

// newer reports whether later fields are looked for: without knowledge, too.
func (s *servers) newer() bool { return atomic.LoadInt32(&s.known) != older }

// ask asks the server for its version, until one is newer: while a control plane is upgraded, its servers take turns.
func (s *servers) ask() {
	if atomic.LoadInt32(&s.known) == newer {
		return
	}
	info, err := s.discovery.ServerVersion()
	if err != nil {
		return
	}
	v, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		if v, err = version.ParseGeneric(info.Major + "." + info.Minor); err != nil {
			return
		}
	}
	if !v.AtLeast(firstLater) {
		atomic.StoreInt32(&s.known, older)
		return
	}
	if atomic.SwapInt32(&s.known, newer) != newer {
		klog.InfoS("Looking for fields of later releases in pods, because the API server is newer than this scheduler", "serverVersion", info.GitVersion)
	}
}

// Forget makes an informer's deletions of pods end what was found of them.
func Forget(informer cache.SharedInformer) {
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after interface{}) {
			// A deletion that the watch missed, and a pod with the same name.
			if uid := uidOf(before); uid != uidOf(after) {
				laterfields.Pods.Delete(uid)
			}
		},
		DeleteFunc: func(deleted interface{}) { laterfields.Pods.Delete(uidOf(deleted)) },
	})
}

func uidOf(object interface{}) types.UID {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	if pod, ok := object.(*v1.Pod); ok {
		return pod.UID
	}
	return ""
}
