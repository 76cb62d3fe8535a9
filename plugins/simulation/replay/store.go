// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"reflect"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

// store has the objects of a cluster. It calls the event handlers of informers directly, so that a change has reached
// the scheduler when it returns: there are no watches and no lists for kinds of client-go. Objects are immutable.
type store struct {
	byType  map[reflect.Type]*table
	version int64
	synced  bool
	// journal is nil without a checkpoint.
	journal *journal

	// mutex guards what clients change, too.
	mutex      sync.Mutex
	byResource map[schema.GroupVersionResource]*table
}

// table has the objects of one kind. It is the kind's informer, too.
type table struct {
	store    *store
	kind     schema.GroupVersionKind
	indexer  cache.Indexer
	handlers []cache.ResourceEventHandler
	// watches are those of clients, which only objects of other groups than client-go's have.
	watches []chan watch.Event
}

var _ cache.SharedIndexInformer = &table{}

// sortedIndexer lists objects by name: client-go's order is random, and some plugins depend on it, such as NodeLoad,
// which learns from one node after the other.
type sortedIndexer struct{ cache.Indexer }

// List implements cache.Store.
func (i sortedIndexer) List() []interface{} { return byName(i.Indexer.List()) }

// Index implements cache.Indexer.
func (i sortedIndexer) Index(name string, of interface{}) ([]interface{}, error) {
	found, err := i.Indexer.Index(name, of)
	return byName(found), err
}

// ByIndex implements cache.Indexer.
func (i sortedIndexer) ByIndex(name, value string) ([]interface{}, error) {
	found, err := i.Indexer.ByIndex(name, value)
	return byName(found), err
}

func byName(objects []interface{}) []interface{} {
	sort.Slice(objects, func(i, j int) bool {
		a, b := objects[i].(metav1.Object), objects[j].(metav1.Object)
		if a.GetNamespace() != b.GetNamespace() {
			return a.GetNamespace() < b.GetNamespace()
		}
		return a.GetName() < b.GetName()
	})
	return objects
}

// newStore returns an empty store, and a factory whose informers read it.
func newStore(client kubernetes.Interface) (*store, informers.SharedInformerFactory) {
	s := &store{byType: map[reflect.Type]*table{}, byResource: map[schema.GroupVersionResource]*table{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	for kind, of := range clientscheme.Scheme.AllKnownTypes() {
		object, ok := reflect.New(of).Interface().(runtime.Object)
		if !ok {
			continue
		}
		if _, ok := object.(metav1.Object); !ok {
			continue
		}
		t := s.addTable(kind)
		s.byType[reflect.TypeOf(object)] = t
		factory.InformerFor(object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return t })
	}
	return s, factory
}

// addTable creates the table of a kind.
func (s *store) addTable(kind schema.GroupVersionKind) *table {
	t := &table{store: s, kind: kind, indexer: sortedIndexer{cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.byResource[plural] = t
	return t
}

// ofResource returns the table of a resource, or nil.
func (s *store) ofResource(resource schema.GroupVersionResource) *table {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.byResource[resource]
}

// of returns the table of an object, which is of a type of client-go, or unstructured.
func (s *store) of(object runtime.Object) *table {
	if t := s.byType[reflect.TypeOf(object)]; t != nil {
		return t
	}
	kind := object.(*unstructured.Unstructured).GroupVersionKind()
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	if t := s.ofResource(plural); t != nil {
		return t
	}
	return s.addTable(kind)
}

// put creates or replaces an object. The caller no longer changes it. An index fails only for an object without metadata.
func (s *store) put(object runtime.Object) {
	t := s.of(object)
	object.(metav1.Object).SetResourceVersion(strconv.FormatInt(atomic.AddInt64(&s.version, 1), 10))
	old, replaced, err := t.indexer.Get(object)
	utilruntime.Must(err)
	s.journal.note(t, object, old)
	// Update indexes the object at once; its listers are read by event handlers.
	utilruntime.Must(t.indexer.Update(object))
	event := watch.Event{Type: watch.Added, Object: object}
	if replaced {
		event.Type = watch.Modified
	}
	for _, handler := range t.handlers {
		if replaced {
			handler.OnUpdate(old, object)
		} else {
			handler.OnAdd(object)
		}
	}
	t.send(event)
}

// remove deletes an object, if it exists, and tells the event handlers.
func (s *store) remove(object runtime.Object) {
	t := s.of(object)
	known, found, err := t.indexer.Get(object)
	utilruntime.Must(err)
	if !found {
		return
	}
	s.journal.note(t, object, known)
	utilruntime.Must(t.indexer.Delete(known))
	for _, handler := range t.handlers {
		handler.OnDelete(known)
	}
	t.send(watch.Event{Type: watch.Deleted, Object: known.(runtime.Object)})
}

// watchBuffer is the number of events that a watch holds. Its reader gets them before the clock moves on.
const watchBuffer = 1 << 16

func (t *table) send(event watch.Event) {
	t.store.mutex.Lock()
	watches := t.watches
	t.store.mutex.Unlock()
	for _, events := range watches {
		events <- event
	}
}

// get returns an object by its namespace and name, or nil.
func (t *table) get(key string) runtime.Object {
	if object, found, err := t.indexer.GetByKey(key); err == nil && found {
		return object.(runtime.Object)
	}
	return nil
}

// AddEventHandler implements cache.SharedInformer.
func (t *table) AddEventHandler(handler cache.ResourceEventHandler) {
	t.handlers = append(t.handlers, handler)
	for _, object := range t.indexer.List() {
		handler.OnAdd(object)
	}
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer. Nothing is lost here, so nothing is sent again.
func (t *table) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) {
	t.AddEventHandler(handler)
}

// GetStore implements cache.SharedInformer.
func (t *table) GetStore() cache.Store { return t.indexer }

// GetIndexer implements cache.SharedIndexInformer.
func (t *table) GetIndexer() cache.Indexer { return t.indexer }

// AddIndexers implements cache.SharedIndexInformer.
func (t *table) AddIndexers(indexers cache.Indexers) error {
	added := cache.Indexers{}
	for name, index := range indexers {
		if _, known := t.indexer.GetIndexers()[name]; !known {
			added[name] = index
		}
	}
	return t.indexer.AddIndexers(added)
}

// GetController implements cache.SharedInformer.
func (t *table) GetController() cache.Controller { return nil }

// Run implements cache.SharedInformer.
func (t *table) Run(stop <-chan struct{}) { <-stop }

// HasSynced implements cache.SharedInformer.
func (t *table) HasSynced() bool { return t.store.synced }

// LastSyncResourceVersion implements cache.SharedInformer.
func (t *table) LastSyncResourceVersion() string {
	return strconv.FormatInt(atomic.LoadInt64(&t.store.version), 10)
}

// SetWatchErrorHandler implements cache.SharedInformer.
func (t *table) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }
