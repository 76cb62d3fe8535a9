// SPDX-License-Identifier: Apache-2.0

// Package capacities reads CSIStorageCapacity objects in the version that the API server has: storage.k8s.io/v1 from
// 1.24 on, v1beta1 up to 1.26. The types have the same fields, by name in JSON and by number in protobuf, so both are
// read into v1beta1's Go type; the libraries of 1.23 have no type for v1.
package capacities

import (
	"fmt"
	"sync/atomic"
	"time"

	storagev1beta1 "k8s.io/api/storage/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	storageinformers "k8s.io/client-go/informers/storage/v1beta1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Resource is the name of the objects in both versions.
const Resource = "csistoragecapacities"

// Versions are the versions that Register's informer reads, the first one first.
var Versions = []schema.GroupVersion{{Group: storagev1beta1.GroupName, Version: "v1"}, storagev1beta1.SchemeGroupVersion}

// Register gives the factory an informer of CSIStorageCapacities that reads the version of the server. It must be called
// before the first use of the factory's own informer. Without a configuration, or with a fake client, that one remains.
func Register(factory informers.SharedInformerFactory, config *rest.Config) error {
	if config == nil {
		return nil
	}
	v1, err := v1Client(config)
	if err != nil {
		return err
	}
	factory.InformerFor(&storagev1beta1.CSIStorageCapacity{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		v1beta1, _ := client.StorageV1beta1().RESTClient().(*rest.RESTClient)
		if v1beta1 == nil {
			return storageinformers.NewCSIStorageCapacityInformer(client, metav1.NamespaceAll, resync, indexers)
		}
		return cache.NewSharedIndexInformer(newServed(v1, v1beta1), &storagev1beta1.CSIStorageCapacity{}, resync, indexers)
	})
	return nil
}

// v1Client returns a client whose decoder reads objects of v1 into the types of v1beta1. Its scheme is its own: in
// client-go's, a write would no longer know the version of these types.
func v1Client(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(Versions[0], &storagev1beta1.CSIStorageCapacity{}, &storagev1beta1.CSIStorageCapacityList{})
	metav1.AddToGroupVersion(scheme, Versions[0])
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config = rest.AddUserAgent(config, "scheduler")
	config.APIPath, config.GroupVersion = "/apis", &Versions[0]
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

// served lists and watches the version that the server had at the last list, at first v1.
type served struct {
	// versions are in the order of Versions.
	versions [2]cache.ListerWatcher
	current  int32
}

func newServed(v1, v1beta1 cache.Getter) *served {
	s := &served{}
	for i, client := range []cache.Getter{v1, v1beta1} {
		s.versions[i] = cache.NewListWatchFromClient(client, Resource, metav1.NamespaceAll, fields.Everything())
	}
	return s
}

// List lists the current version, or the other one if the server does not have that, or refuses it: reflectors list
// again when a watch fails, so that a change of the server's version is noticed. Discovery is not asked, because its
// answer can lack what the server serves.
func (s *served) List(options metav1.ListOptions) (runtime.Object, error) {
	current := atomic.LoadInt32(&s.current)
	list, err := s.versions[current].List(options)
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return list, err
	}
	other := 1 - current
	list, otherErr := s.versions[other].List(options)
	if otherErr != nil {
		return nil, fmt.Errorf("%s: %v; %s: %w", Versions[current], err, Versions[other], otherErr)
	}
	atomic.StoreInt32(&s.current, other)
	return list, nil
}

// Watch watches the version of the last list.
func (s *served) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.versions[atomic.LoadInt32(&s.current)].Watch(options)
}
