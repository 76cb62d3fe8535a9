// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// byNode is the name of the index of pods by node.
const byNode = "node"

// cluster holds the watched nodes, and the watched pods that are bound and have not ended. A pod that the scheduler has
// just assumed is missing until its binding is watched.
//
// It is the lister of snapshots that plugins are created with: it returns that of the current request. There is one such
// request at a time; see Decider.
type cluster struct {
	nodes                   corelisters.NodeLister
	pods                    cache.Indexer
	nodesSynced, podsSynced cache.InformerSynced
	current                 atomic.Pointer[snapshot]
}

// newInformerFactory returns a factory whose informer for pods leaves out ended pods, as the scheduler's does.
func newInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, byNode: nodeOf}
		return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync, indexers, func(options *metav1.ListOptions) {
			options.FieldSelector = fmt.Sprintf("status.phase!=%s,status.phase!=%s", corev1.PodSucceeded, corev1.PodFailed)
		})
	})
	return factory
}

// nodeOf is the index function of byNode.
func nodeOf(object interface{}) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil, nil
	}
	return []string{pod.Spec.NodeName}, nil
}

// newCluster returns a cluster that is watched with a factory of newInformerFactory, which is started later.
func newCluster(factory informers.SharedInformerFactory) *cluster {
	nodes, pods := factory.Core().V1().Nodes(), factory.Core().V1().Pods()
	c := &cluster{
		nodes: nodes.Lister(), nodesSynced: nodes.Informer().HasSynced,
		pods: pods.Informer().GetIndexer(), podsSynced: pods.Informer().HasSynced,
	}
	// Before the first request there are no nodes.
	c.current.Store(&snapshot{all: func() ([]*framework.NodeInfo, error) { return nil, nil }})
	return c
}

// NodeInfos returns the snapshot of the current request.
func (c *cluster) NodeInfos() framework.NodeInfoLister { return c.current.Load() }

// nodeInfos returns the NodeInfos of nodes with their known pods.
func (c *cluster) nodeInfos(nodes []*corev1.Node) ([]*framework.NodeInfo, error) {
	infos := make([]*framework.NodeInfo, len(nodes))
	for i, node := range nodes {
		pods, err := c.pods.ByIndex(byNode, node.Name)
		if err != nil {
			return nil, err
		}
		infos[i] = framework.NewNodeInfo()
		for _, pod := range pods {
			infos[i].AddPod(pod.(*corev1.Pod))
		}
		infos[i].SetNode(node)
	}
	return infos, nil
}

// look makes the plugins see a new snapshot, for a request with some nodes, whose names are distinct. It returns their
// NodeInfos.
func (c *cluster) look(nodes []*corev1.Node) ([]*framework.NodeInfo, error) {
	infos, err := c.nodeInfos(nodes)
	byName := make(map[string]*framework.NodeInfo, len(nodes))
	for _, info := range infos {
		byName[info.Node().Name] = info
	}
	c.current.Store(&snapshot{byName: byName, all: sync.OnceValues(func() ([]*framework.NodeInfo, error) {
		nodes, err := c.nodes.List(labels.Everything())
		if err != nil {
			return nil, err
		}
		nodes = slices.DeleteFunc(nodes, func(node *corev1.Node) bool { return byName[node.Name] != nil })
		slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
		others, err := c.nodeInfos(nodes)
		return slices.Concat(infos, others), err
	})})
	return infos, err
}

// snapshot is the plugins' immutable view of the cluster during one request.
//
// A NodeInfo costs about a microsecond for each of its pods, so those of the nodes that are not in the request are built
// only when a plugin lists them. Plugins that look at one node at a time never do.
type snapshot struct {
	byName map[string]*framework.NodeInfo
	all    func() ([]*framework.NodeInfo, error)
}

// List returns all nodes: those of the request, and then the others, sorted by name.
func (s *snapshot) List() ([]*framework.NodeInfo, error) { return s.all() }

// Get returns the node with a name.
func (s *snapshot) Get(name string) (*framework.NodeInfo, error) {
	if info := s.byName[name]; info != nil {
		return info, nil
	}
	all, err := s.all()
	for _, info := range all {
		if info.Node().Name == name {
			return info, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("nodeinfo not found for node name %q", name)
	}
	return nil, err
}

// errNoAffinity is the error of the lists that only InterPodAffinity reads, which the scheduler runs itself.
var errNoAffinity = errors.New("scheduler-extender lists no pods by affinity; next: run the plugin in this project's scheduler")

// HavePodsWithAffinityList returns an error.
func (s *snapshot) HavePodsWithAffinityList() ([]*framework.NodeInfo, error) {
	return nil, errNoAffinity
}

// HavePodsWithRequiredAntiAffinityList returns an error.
func (s *snapshot) HavePodsWithRequiredAntiAffinityList() ([]*framework.NodeInfo, error) {
	return nil, errNoAffinity
}
