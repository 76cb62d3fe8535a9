// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"slices"
	"strings"
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
type cluster struct {
	nodes corelisters.NodeLister
	pods  cache.Indexer
	// synced report whether each informer's cache has synced.
	synced []cache.InformerSynced
}

// newInformerFactory returns a factory whose informer for pods leaves out ended pods, as the scheduler's does.
func newInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		running := fmt.Sprintf("status.phase!=%s,status.phase!=%s", corev1.PodSucceeded, corev1.PodFailed)
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, byNode: nodeOf}
		return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync, indexers, func(options *metav1.ListOptions) {
			options.FieldSelector = running
		})
	})
	return factory
}

// nodeOf is the index function of byNode. It also skips ended pods, because not every source of pods supports field
// selectors.
func nodeOf(object interface{}) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T is not a pod", object)
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil, nil
	}
	return []string{pod.Spec.NodeName}, nil
}

// newCluster returns a cluster that is watched with a factory of newInformerFactory, which is started later.
func newCluster(factory informers.SharedInformerFactory) *cluster {
	nodes, pods := factory.Core().V1().Nodes(), factory.Core().V1().Pods()
	return &cluster{
		nodes:  nodes.Lister(),
		pods:   pods.Informer().GetIndexer(),
		synced: []cache.InformerSynced{nodes.Informer().HasSynced, pods.Informer().HasSynced},
	}
}

// hasSynced reports whether the caches of nodes and pods have synced.
func (c *cluster) hasSynced() bool {
	for _, synced := range c.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// node returns the node with a name, or nil if it is unknown.
func (c *cluster) node(name string) *corev1.Node {
	node, err := c.nodes.Get(name)
	if err != nil { // not found is the only error
		return nil
	}
	return node
}

// nodeInfo returns the NodeInfo of a node with its known pods.
func (c *cluster) nodeInfo(node *corev1.Node) (*framework.NodeInfo, error) {
	pods, err := c.pods.ByIndex(byNode, node.Name)
	if err != nil {
		return nil, err
	}
	info := framework.NewNodeInfo()
	for _, pod := range pods {
		info.AddPod(pod.(*corev1.Pod))
	}
	info.SetNode(node)
	return info, nil
}

// others returns the NodeInfos of all nodes except some, sorted by name.
func (c *cluster) others(than map[string]*framework.NodeInfo) ([]*framework.NodeInfo, error) {
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	var infos []*framework.NodeInfo
	for _, node := range nodes {
		if than[node.Name] != nil {
			continue
		}
		info, err := c.nodeInfo(node)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}
